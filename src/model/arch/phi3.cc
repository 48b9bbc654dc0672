// Phi-3, Phi-3.5 and Phi-4 (Abdin et al. 2024, arXiv:2404.14219, arXiv:2412.08905): Llama's block
// with q, k, v and gate, up in one tensor each; longrope; rotation of a part of each head.
#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"
#include "model/rope.h"

namespace optima::model {
namespace {

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys, {kernels::RopePairs::halves, config.head_dim}, config));
  OPTIMA_TRY(keys.read_activation("silu", config));
  OPTIMA_TRY(keys.read_windows(0, config));
  return config;
}

Result<graph::ValueId> block(BlockBuilder& b, graph::ValueId x) {
  return pre_norm_block(b, x, {.projections = Projections::fused},
                        {.kind = FeedForward::gated_fused});
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block});
}

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  OPTIMA_TRY(expect_flag(config, "attention_bias", false));
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto window, config.integer("sliding_window"));
  const std::vector<uint8_t> sliding(window && layers > 0 ? static_cast<size_t>(layers) : 0, 1);
  OPTIMA_TRY(translate_layer_types(config, sliding, out));
  // Without scaling the original context says nothing.
  config.find("original_max_position_embeddings");
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim}, out);
}

constexpr HfTensorName kNames[] = {
    {"model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
};
constexpr HfForm kForms[] = {{"phi3", "phi3", translate, kNames, kLlamaNames}};

}  // namespace

const Architecture kPhi3 = {"phi3", configure, build, kForms};

}  // namespace optima::model
