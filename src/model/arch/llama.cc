// Llama 2 and 3, SmolLM2, Mistral and Mixtral (Touvron et al. 2023, arXiv:2302.13971; Jiang et al.
// 2023, arXiv:2310.06825; Jiang et al. 2024, arXiv:2401.04088): pre-norm blocks, grouped-query
// attention with rotary positions, SwiGLU, or experts of it.
#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"
#include "model/rope.h"

namespace optima::model {
namespace {

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys, {llama_pairs(file), config.head_dim}, config));
  OPTIMA_TRY(keys.read_activation("silu", config));
  OPTIMA_TRY(keys.read_windows(0, config));
  OPTIMA_ASSIGN(const int32_t experts, keys.integer_or("expert_count", {0, INT32_MAX}, 0));
  if (experts > 0) {  // Mixtral
    OPTIMA_TRY(keys.read_experts(config));
    config.moe.ffn = config.ffn;
  }
  return config;
}

Result<graph::ValueId> block(BlockBuilder& b, graph::ValueId x) {
  return pre_norm_block(b, x, {.qkv_bias = Bias::if_present, .output_bias = Bias::if_present},
                        {.bias = Bias::if_present});
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block});
}

// ---- Hugging Face folders ----

constexpr HfTensorName kMixtralNames[] = {
    {"model.layers.{}.block_sparse_moe.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "blk.{}.ffn_gate.{}.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "blk.{}.ffn_down.{}.weight"},
    {"model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "blk.{}.ffn_up.{}.weight"},
};

Status translate_llama(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  // Whether there are biases shows in the tensors.
  config.find("attention_bias");
  config.find("mlp_bias");
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim}, out);
}

// One window for all layers, or none.
Status translate_mistral(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_llama(config, out));
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto window, config.integer("sliding_window"));
  const std::vector<uint8_t> sliding(window && layers > 0 ? static_cast<size_t>(layers) : 0, 1);
  return translate_layer_types(config, sliding, out);
}

Status translate_mixtral(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_mistral(config, out));
  OPTIMA_ASSIGN(const int64_t experts, config.need_integer("num_local_experts"));
  OPTIMA_TRY(out.integer("expert_count", experts));
  OPTIMA_ASSIGN(const int64_t used, config.need_integer("num_experts_per_tok"));
  return out.integer("expert_used_count", used);
}

constexpr HfForm kForms[] = {
    {"llama", "llama", translate_llama, {}, kLlamaNames},
    {"mistral", "llama", translate_mistral, {}, kLlamaNames},
    {"mixtral", "llama", translate_mixtral, kMixtralNames, kLlamaNames},
};

}  // namespace

const Architecture kLlama = {"llama", configure, build, kForms};

}  // namespace optima::model
