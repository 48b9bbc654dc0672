// GPT-2 (Radford et al. 2019): layer norms with biases, learned positions, a plain feed-forward.
// GPT-NeoX (Black et al. 2022, arXiv:2204.06745; Pythia): rotation of a part of each head, and
// attention and feed-forward side by side on one residual.
#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr AttentionParts kAttention{.projections = Projections::fused,
                                    .qkv_bias = Bias::if_present,
                                    .output_bias = Bias::if_present};
constexpr FeedForwardParts kFeedForward{.kind = FeedForward::plain, .bias = Bias::if_present};

Result<ModelConfig> configure_gpt2(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common(NormKind::layer));
  for (LayerConfig& layer : config.layers) layer.rope = kNoRope;
  OPTIMA_TRY(keys.read_activation("gelu_tanh", config));
  OPTIMA_ASSIGN(const double scale,
                keys.real_or("attention.scale", static_cast<double>(config.attention_scale)));
  config.attention_scale = static_cast<float>(scale);
  OPTIMA_ASSIGN(const bool falls, keys.flag_or("attention.scale_by_inverse_layer", false));
  for (size_t i = 0; falls && i < config.layers.size(); ++i)
    config.layers[i].attention_scale_factor = 1.0f / static_cast<float>(i + 1);
  return config;
}

Result<ModelConfig> configure_neox(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common(NormKind::layer));
  OPTIMA_TRY(add_rope(file, keys, {kernels::RopePairs::halves, config.head_dim}, config));
  OPTIMA_TRY(keys.read_activation("gelu_erf", config));
  OPTIMA_ASSIGN(const bool parallel, keys.flag_or("use_parallel_residual", true));
  config.residual = parallel ? Residual::parallel : Residual::serial;
  return config;
}

Result<graph::ValueId> block_gpt2(BlockBuilder& b, graph::ValueId x) {
  return pre_norm_block(b, x, kAttention, kFeedForward);
}

Result<graph::ValueId> block_neox(BlockBuilder& b, graph::ValueId x) {
  if (b.config().residual == Residual::serial)
    return pre_norm_block(b, x, kAttention, kFeedForward);
  OPTIMA_ASSIGN(const graph::ValueId h, b.norm(x, "attn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId a, b.attention(h, kAttention));
  OPTIMA_ASSIGN(const graph::ValueId f, b.norm(x, "ffn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId d, b.feed_forward(f, kFeedForward));
  return b.graph().add(b.graph().add(x, a), d);
}

Result<graph::Graph> build_gpt2(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block_gpt2, Positions::learned});
}

Result<graph::Graph> build_neox(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block_neox});
}

// ---- Hugging Face folders ----

Status translate_gpt2(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_ASSIGN(const int64_t hidden, config.need_integer("n_embd"));
  OPTIMA_TRY(out.integer("embedding_length", hidden));
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("n_layer"));
  OPTIMA_TRY(out.integer("block_count", layers));
  OPTIMA_ASSIGN(const int64_t heads, config.need_integer("n_head"));
  OPTIMA_TRY(out.integer("attention.head_count", heads));
  OPTIMA_ASSIGN(const auto inner, config.integer("n_inner"));
  OPTIMA_TRY(out.integer("feed_forward_length", inner.value_or(4 * hidden)));
  OPTIMA_ASSIGN(const auto context, config.integer("n_positions"));
  config.find("n_ctx");  // the same number in old files
  OPTIMA_TRY(out.integer("context_length", context.value_or(1024)));
  OPTIMA_ASSIGN(const auto epsilon, config.real("layer_norm_epsilon"));
  OPTIMA_TRY(out.real("attention.layer_norm_epsilon", epsilon.value_or(1e-5)));
  OPTIMA_TRY(translate_activation(config, "activation_function", out));
  config.find("vocab_size");
  OPTIMA_ASSIGN(const auto falls, config.boolean("scale_attn_by_inverse_layer_idx"));
  OPTIMA_TRY(out.flag("attention.scale_by_inverse_layer", falls.value_or(false)));
  OPTIMA_ASSIGN(const auto scaled, config.boolean("scale_attn_weights"));
  return scaled.value_or(true) ? Status() : out.real("attention.scale", 1.0);
}

Status translate_neox(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_ASSIGN(const auto epsilon, config.real("layer_norm_eps"));
  OPTIMA_TRY(out.real("attention.layer_norm_epsilon", epsilon.value_or(1e-5)));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  config.find("attention_bias");  // shows in the tensors
  OPTIMA_ASSIGN(const auto parallel, config.boolean("use_parallel_residual"));
  OPTIMA_TRY(out.flag("use_parallel_residual", parallel.value_or(true)));
  OPTIMA_ASSIGN(const auto base, config.real("rotary_emb_base"));
  OPTIMA_ASSIGN(const auto part, config.real("rotary_pct"));
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config,
                        {.head_dim = head_dim,
                         .base_default = base.value_or(10000.0),
                         .partial_default = part.value_or(0.25)},
                        out);
}

constexpr HfTransform kTranspose = HfTransform::transpose;
constexpr HfTensorName kGpt2Names[] = {
    {"transformer.wte.weight", "token_embd.weight"},
    {"transformer.wpe.weight", "position_embd.weight"},
    {"transformer.ln_f.weight", "output_norm.weight"},
    {"transformer.ln_f.bias", "output_norm.bias"},
    {"transformer.h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"transformer.h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"transformer.h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"transformer.h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"transformer.h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", kTranspose},
    {"transformer.h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"transformer.h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", kTranspose},
    {"transformer.h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"transformer.h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", kTranspose},
    {"transformer.h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"transformer.h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", kTranspose},
    {"transformer.h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
};
constexpr HfTransform kByHead = HfTransform::heads_to_parts;
constexpr HfTensorName kNeoxNames[] = {
    {"gpt_neox.embed_in.weight", "token_embd.weight"},
    {"embed_out.weight", "output.weight"},
    {"lm_head.weight", "output.weight"},  // as transformers 5 calls it in memory
    {"gpt_neox.final_layer_norm.weight", "output_norm.weight"},
    {"gpt_neox.final_layer_norm.bias", "output_norm.bias"},
    {"gpt_neox.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"gpt_neox.layers.{}.input_layernorm.bias", "blk.{}.attn_norm.bias"},
    {"gpt_neox.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gpt_neox.layers.{}.post_attention_layernorm.bias", "blk.{}.ffn_norm.bias"},
    {"gpt_neox.layers.{}.attention.query_key_value.weight", "blk.{}.attn_qkv.weight", kByHead},
    {"gpt_neox.layers.{}.attention.query_key_value.bias", "blk.{}.attn_qkv.bias", kByHead},
    {"gpt_neox.layers.{}.attention.dense.weight", "blk.{}.attn_output.weight"},
    {"gpt_neox.layers.{}.attention.dense.bias", "blk.{}.attn_output.bias"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", "blk.{}.ffn_up.weight"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", "blk.{}.ffn_up.bias"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", "blk.{}.ffn_down.weight"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", "blk.{}.ffn_down.bias"},
};
constexpr HfForm kGpt2Forms[] = {{"gpt2", "gpt2", translate_gpt2, kGpt2Names, {}}};
constexpr HfForm kNeoxForms[] = {{"gpt_neox", "gptneox", translate_neox, kNeoxNames, {}}};

}  // namespace

const Architecture kGpt2 = {"gpt2", configure_gpt2, build_gpt2, kGpt2Forms};
const Architecture kGptNeox = {"gptneox", configure_neox, build_neox, kNeoxForms};

}  // namespace optima::model
