// Qwen 2 and 2.5 (Yang et al. 2024, arXiv:2407.10671): Llama's block with biases on q, k and v.
// Qwen 3 (Yang et al. 2025, arXiv:2505.09388): norms on the heads of q and k instead, dense or with
// experts.
#include <algorithm>

#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr IntRange kSizes{1, 1 << 20};

Result<ModelConfig> configure_qwen2(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys, {kernels::RopePairs::halves, config.head_dim}, config));
  OPTIMA_TRY(keys.read_activation("silu", config));
  OPTIMA_TRY(keys.read_windows(0, config));
  return config;
}

Result<ModelConfig> configure_qwen3(const ModelFile& file) {
  OPTIMA_ASSIGN(ModelConfig config, configure_qwen2(file));
  config.qk_norm = QkNorm::each_head;
  return config;
}

Result<ModelConfig> configure_qwen3_moe(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, configure_qwen3(file));
  OPTIMA_TRY(keys.read_experts(config));
  OPTIMA_ASSIGN(config.moe.ffn, keys.integer("expert_feed_forward_length", kSizes));
  OPTIMA_ASSIGN(const bool normalised, keys.flag_or("expert_weights_norm", true));
  config.moe.weights = normalised ? kernels::MoeWeights::normalised : kernels::MoeWeights::as_is;
  return config;
}

Result<graph::ValueId> block_qwen2(BlockBuilder& b, graph::ValueId x) {
  return pre_norm_block(b, x, {.qkv_bias = Bias::required}, {});
}

Result<graph::ValueId> block_qwen3(BlockBuilder& b, graph::ValueId x) {
  return pre_norm_block(b, x, {.qkv_bias = Bias::if_present, .output_bias = Bias::if_present}, {});
}

Result<graph::Graph> build_qwen2(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block_qwen2});
}

Result<graph::Graph> build_qwen3(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block_qwen3});
}

// ---- Hugging Face folders ----

// The window counts where use_sliding_window is set, for layers from max_window_layers on.
Status translate_windows(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto use, config.boolean("use_sliding_window"));
  OPTIMA_ASSIGN(const auto first, config.integer("max_window_layers"));
  if (!use.value_or(false)) {
    config.find("sliding_window");
    config.find("layer_types");
    return {};
  }
  std::vector<uint8_t> sliding;
  for (int64_t i = 0; i < layers; ++i) sliding.push_back(i >= first.value_or(0) ? 1 : 0);
  return translate_layer_types(config, sliding, out);
}

Status translate_qwen2(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  OPTIMA_TRY(translate_windows(config, out));
  OPTIMA_TRY(expect_flag(config, "use_mrope", false));
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim}, out);
}

Status translate_qwen3(const HfConfig& config, MetadataWriter& out) {
  config.find("attention_bias");  // shows in the tensors
  return translate_qwen2(config, out);
}

// Experts in every decoder_sparse_step-th layer that mlp_only_layers does not name.
Status translate_expert_layers(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto step, config.integer("decoder_sparse_step"));
  OPTIMA_ASSIGN(const auto dense, config.reals("mlp_only_layers"));
  if (step && *step < 1) return Status(Code::format, "config.json: 'decoder_sparse_step' < 1");
  std::vector<uint8_t> flags;
  for (int64_t i = 0; i < layers; ++i) {
    const bool named =
        dense && std::find(dense->begin(), dense->end(), static_cast<double>(i)) != dense->end();
    flags.push_back(!named && (i + 1) % step.value_or(1) == 0 ? 1 : 0);
  }
  return out.flags("expert_layers", std::move(flags));
}

Status translate_qwen3_moe(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_qwen3(config, out));
  OPTIMA_ASSIGN(const auto local, config.integer("num_local_experts"));
  OPTIMA_ASSIGN(const auto number, config.integer("num_experts"));
  if (!local && !number) return Status(Code::format, "config.json: 'num_experts' is missing");
  OPTIMA_TRY(out.integer("expert_count", number ? *number : *local));
  OPTIMA_ASSIGN(const int64_t used, config.need_integer("num_experts_per_tok"));
  OPTIMA_TRY(out.integer("expert_used_count", used));
  OPTIMA_ASSIGN(const int64_t width, config.need_integer("moe_intermediate_size"));
  OPTIMA_TRY(out.integer("expert_feed_forward_length", width));
  OPTIMA_ASSIGN(const auto normalised, config.boolean("norm_topk_prob"));
  OPTIMA_TRY(out.flag("expert_weights_norm", normalised.value_or(false)));
  return translate_expert_layers(config, out);
}

constexpr HfTensorName kMoeNames[] = {
    {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.experts.{}.gate_proj.weight", "blk.{}.ffn_gate.{}.weight"},
    {"model.layers.{}.mlp.experts.{}.up_proj.weight", "blk.{}.ffn_up.{}.weight"},
    {"model.layers.{}.mlp.experts.{}.down_proj.weight", "blk.{}.ffn_down.{}.weight"},
};
constexpr HfForm kQwen2Forms[] = {{"qwen2", "qwen2", translate_qwen2, {}, kLlamaNames}};
constexpr HfForm kQwen3Forms[] = {{"qwen3", "qwen3", translate_qwen3, {}, kLlamaNames}};
constexpr HfForm kQwen3MoeForms[] = {
    {"qwen3_moe", "qwen3moe", translate_qwen3_moe, kMoeNames, kLlamaNames}};

}  // namespace

const Architecture kQwen2 = {"qwen2", configure_qwen2, build_qwen2, kQwen2Forms};
const Architecture kQwen3 = {"qwen3", configure_qwen3, build_qwen3, kQwen3Forms};
const Architecture kQwen3Moe = {"qwen3moe", configure_qwen3_moe, build_qwen3, kQwen3MoeForms};

}  // namespace optima::model
