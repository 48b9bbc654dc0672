// OLMo 2 (OLMo Team 2025, arXiv:2501.00656): norms after attention and feed-forward instead of
// before, and over the whole row of q and k.
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
  config.qk_norm = QkNorm::all_heads;
  return config;
}

Result<graph::ValueId> block(BlockBuilder& b, graph::ValueId x) {
  OPTIMA_ASSIGN(const graph::ValueId a, b.attention(x, {}));
  OPTIMA_ASSIGN(const graph::ValueId a_norm, b.norm(a, "post_attention_norm"));
  const graph::ValueId mid = b.graph().add(x, a_norm);
  OPTIMA_ASSIGN(const graph::ValueId d, b.feed_forward(mid, {}));
  OPTIMA_ASSIGN(const graph::ValueId d_norm, b.norm(d, "post_ffw_norm"));
  return b.graph().add(mid, d_norm);
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block});
}

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  OPTIMA_TRY(expect_flag(config, "attention_bias", false));
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim}, out);
}

constexpr HfTensorName kNames[] = {
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
};
constexpr HfForm kForms[] = {{"olmo2", "olmo2", translate, kNames, kLlamaNames}};

}  // namespace

const Architecture kOlmo2 = {"olmo2", configure, build, kForms};

}  // namespace optima::model
