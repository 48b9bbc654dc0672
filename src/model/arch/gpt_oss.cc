// gpt-oss (OpenAI 2025, arXiv:2508.10925): windowed and full layers by turns, a sink for each query
// head, biases everywhere, YaRN, and experts with a clamped SwiGLU in MXFP4.
#include "base/text.h"
#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr int32_t kPattern = 2;  // every second layer sees all positions
constexpr double kAlpha = 1.702;
constexpr double kLimit = 7.0;

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys,
                      {.pairs = kernels::RopePairs::halves,
                       .head_dim = config.head_dim,
                       .base_default = 150000.0,
                       .truncate_default = false},
                      config));
  OPTIMA_TRY(keys.read_windows(kPattern, config));
  OPTIMA_TRY(keys.read_experts(config));
  OPTIMA_ASSIGN(config.moe.ffn,
                keys.integer_or("expert_feed_forward_length", {1, 1 << 20}, config.ffn));
  config.moe.scoring = kernels::MoeScoring::top_then_softmax;
  config.moe.weights = kernels::MoeWeights::as_is;
  OPTIMA_ASSIGN(const double alpha, keys.real_or("swiglu_alpha", kAlpha));
  OPTIMA_ASSIGN(const double limit, keys.real_or("swiglu_limit", kLimit));
  config.gate = {kernels::GateAct::swiglu_clamped, static_cast<float>(alpha),
                 static_cast<float>(limit)};
  return config;
}

Result<graph::ValueId> block(BlockBuilder& b, graph::ValueId x) {
  OPTIMA_ASSIGN(const graph::ValueId h, b.norm(x, "attn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId a, b.attention(h, {.qkv_bias = Bias::required,
                                                        .output_bias = Bias::required,
                                                        .sinks = Sinks::required}));
  const graph::ValueId mid = b.graph().add(x, a);
  OPTIMA_ASSIGN(const graph::ValueId f, b.norm(mid, "post_attention_norm"));
  OPTIMA_ASSIGN(const graph::ValueId route, b.route(f, Bias::required));
  OPTIMA_ASSIGN(const graph::ValueId e, b.experts(f, route));
  return b.graph().add(mid, e);
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block});
}

// ---- Hugging Face folders ----

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(expect_string(config, "hidden_act", "silu"));
  OPTIMA_TRY(expect_flag(config, "attention_bias", true));
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  std::vector<uint8_t> sliding;
  for (int64_t i = 0; i < layers; ++i) sliding.push_back((i + 1) % kPattern != 0 ? 1 : 0);
  OPTIMA_TRY(translate_layer_types(config, sliding, out));
  OPTIMA_ASSIGN(const int64_t experts, config.need_integer("num_local_experts"));
  OPTIMA_TRY(out.integer("expert_count", experts));
  OPTIMA_ASSIGN(const auto used, config.integer("num_experts_per_tok"));
  OPTIMA_ASSIGN(const auto used_too, config.integer("experts_per_token"));
  OPTIMA_TRY(out.integer("expert_used_count", used ? *used : used_too.value_or(4)));
  OPTIMA_ASSIGN(const auto alpha, config.real("swiglu_alpha"));
  OPTIMA_TRY(out.real("swiglu_alpha", alpha.value_or(kAlpha)));
  OPTIMA_ASSIGN(const auto limit, config.real("swiglu_limit"));
  OPTIMA_TRY(out.real("swiglu_limit", limit.value_or(kLimit)));
  config.find("initial_context_length");  // rope_scaling repeats it
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim, .base_default = 150000.0}, out);
}

constexpr HfTensorName kNames[] = {
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"},
    {"model.layers.{}.mlp.router.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.mlp.router.bias", "blk.{}.ffn_gate_inp.bias"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight",
     HfTransform::gate_of_pairs},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_up_exps.weight",
     HfTransform::up_of_pairs},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_gate_exps.bias",
     HfTransform::gate_of_bias_pairs},
    {"model.layers.{}.mlp.experts.gate_up_proj_bias", "blk.{}.ffn_up_exps.bias",
     HfTransform::up_of_bias_pairs},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight",
     HfTransform::transpose},
    {"model.layers.{}.mlp.experts.down_proj_bias", "blk.{}.ffn_down_exps.bias"},
    {"model.layers.{}.mlp.experts.gate_up_proj_blocks", "blk.{}.ffn_gate_exps.weight",
     HfTransform::mxfp4_gate_of_pairs},
    {"model.layers.{}.mlp.experts.gate_up_proj_blocks", "blk.{}.ffn_up_exps.weight",
     HfTransform::mxfp4_up_of_pairs},
    {"model.layers.{}.mlp.experts.down_proj_blocks", "blk.{}.ffn_down_exps.weight",
     HfTransform::mxfp4},
    {"model.layers.{}.mlp.experts.gate_up_proj_scales", "", HfTransform::read_with_blocks},
    {"model.layers.{}.mlp.experts.down_proj_scales", "", HfTransform::read_with_blocks},
};
constexpr HfForm kForms[] = {{"gpt_oss", "gpt-oss", translate, kNames, kLlamaNames}};

}  // namespace

const Architecture kGptOss = {"gpt-oss", configure, build, kForms};

}  // namespace optima::model
