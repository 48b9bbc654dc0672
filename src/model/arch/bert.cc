// BERT (Devlin et al. 2018, arXiv:1810.04805): an encoder, whose tokens all see each other. Learned
// positions, a norm behind each half of a block in place of before it, no head: its result are the
// hidden rows, from which embeddings are pooled (Reimers & Gurevych 2019, arXiv:1908.10084).
#include "base/text.h"
#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"

namespace optima::model {
namespace {

using graph::ValueId;

constexpr AttentionParts kAttention{.qkv_bias = Bias::required, .output_bias = Bias::required};
constexpr FeedForwardParts kFeedForward{.kind = FeedForward::plain, .bias = Bias::required};

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common(NormKind::layer));
  OPTIMA_ASSIGN(const bool causal, keys.flag_or("attention.causal", false));
  if (causal) return Status(Code::unsupported, "bert with causal attention");
  config.mask = kernels::AttentionMask::all;
  for (LayerConfig& layer : config.layers) layer.rope = kNoRope;
  OPTIMA_TRY(keys.read_activation("gelu_erf", config));
  OPTIMA_TRY(keys.read_pooling(Pooling::mean, config));
  const Tensor* types = file.find("token_types.weight");
  if (types == nullptr || types->rows() > INT32_MAX)
    return Status(Code::format, "tensor 'token_types.weight' is missing or has too many rows");
  config.token_types = static_cast<int32_t>(types->rows());
  return config;
}

Result<ValueId> block(BlockBuilder& b, ValueId x) {
  OPTIMA_ASSIGN(const ValueId a, b.attention(x, kAttention));
  OPTIMA_ASSIGN(const ValueId mid, b.norm(b.graph().add(x, a), "attn_output_norm"));
  OPTIMA_ASSIGN(const ValueId f, b.feed_forward(mid, kFeedForward));
  return b.norm(b.graph().add(mid, f), "layer_output_norm");
}

// The embedding is the sum of the token's row, its position's and its type's. Types tell two texts
// apart that are given together; one text is of the first type.
Result<ValueId> embed(graph::Graph& g, const ModelConfig& c, Weights& w) {
  OPTIMA_ASSIGN(const graph::Weight tokens, w.matrix("token_embd.weight", c.vocabulary, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight positions,
                w.matrix("position_embd.weight", c.context_length, c.hidden));
  OPTIMA_ASSIGN(const float* types, w.vectors("token_types.weight", c.token_types, c.hidden));
  return g.add_bias(g.add_position(g.embed(tokens, 1.0f), positions), types);
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_encoder_graph(config, weights, {embed, block});
}

// ---- Hugging Face folders ----

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_ASSIGN(const auto epsilon, config.real("layer_norm_eps"));
  OPTIMA_TRY(out.real("attention.layer_norm_epsilon", epsilon.value_or(1e-12)));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  OPTIMA_TRY(expect_string(config, "position_embedding_type", "absolute"));
  OPTIMA_TRY(expect_flag(config, "is_decoder", false));
  OPTIMA_TRY(expect_flag(config, "add_cross_attention", false));
  config.find("type_vocab_size");      // shows in the tensors
  config.find("hidden_dropout_prob");  // of training, as the next
  config.find("attention_probs_dropout_prob");
  return {};
}

constexpr HfTransform kUnused = HfTransform::unused;
constexpr HfTensorName kNames[] = {
    {"bert.embeddings.word_embeddings.weight", "token_embd.weight"},
    {"bert.embeddings.position_embeddings.weight", "position_embd.weight"},
    {"bert.embeddings.token_type_embeddings.weight", "token_types.weight"},
    {"bert.embeddings.LayerNorm.weight", "token_embd_norm.weight"},
    {"bert.embeddings.LayerNorm.bias", "token_embd_norm.bias"},
    {"bert.encoder.layer.{}.attention.self.query.weight", "blk.{}.attn_q.weight"},
    {"bert.encoder.layer.{}.attention.self.query.bias", "blk.{}.attn_q.bias"},
    {"bert.encoder.layer.{}.attention.self.key.weight", "blk.{}.attn_k.weight"},
    {"bert.encoder.layer.{}.attention.self.key.bias", "blk.{}.attn_k.bias"},
    {"bert.encoder.layer.{}.attention.self.value.weight", "blk.{}.attn_v.weight"},
    {"bert.encoder.layer.{}.attention.self.value.bias", "blk.{}.attn_v.bias"},
    {"bert.encoder.layer.{}.attention.output.dense.weight", "blk.{}.attn_output.weight"},
    {"bert.encoder.layer.{}.attention.output.dense.bias", "blk.{}.attn_output.bias"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.weight", "blk.{}.attn_output_norm.weight"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.bias", "blk.{}.attn_output_norm.bias"},
    {"bert.encoder.layer.{}.intermediate.dense.weight", "blk.{}.ffn_up.weight"},
    {"bert.encoder.layer.{}.intermediate.dense.bias", "blk.{}.ffn_up.bias"},
    {"bert.encoder.layer.{}.output.dense.weight", "blk.{}.ffn_down.weight"},
    {"bert.encoder.layer.{}.output.dense.bias", "blk.{}.ffn_down.bias"},
    {"bert.encoder.layer.{}.output.LayerNorm.weight", "blk.{}.layer_output_norm.weight"},
    {"bert.encoder.layer.{}.output.LayerNorm.bias", "blk.{}.layer_output_norm.bias"},
    // The oldest checkpoints, converted from TensorFlow, have its names for the norms.
    {"bert.embeddings.LayerNorm.gamma", "token_embd_norm.weight"},
    {"bert.embeddings.LayerNorm.beta", "token_embd_norm.bias"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.gamma", "blk.{}.attn_output_norm.weight"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.beta", "blk.{}.attn_output_norm.bias"},
    {"bert.encoder.layer.{}.output.LayerNorm.gamma", "blk.{}.layer_output_norm.weight"},
    {"bert.encoder.layer.{}.output.LayerNorm.beta", "blk.{}.layer_output_norm.bias"},
    // What pre-training stacked on the encoder: no part of its hidden rows.
    {"bert.pooler.dense.weight", "", kUnused},
    {"bert.pooler.dense.bias", "", kUnused},
    {"cls.predictions.bias", "", kUnused},
    {"cls.predictions.decoder.weight", "", kUnused},
    {"cls.predictions.decoder.bias", "", kUnused},
    {"cls.predictions.transform.dense.weight", "", kUnused},
    {"cls.predictions.transform.dense.bias", "", kUnused},
    {"cls.predictions.transform.LayerNorm.weight", "", kUnused},
    {"cls.predictions.transform.LayerNorm.bias", "", kUnused},
    {"cls.predictions.transform.LayerNorm.gamma", "", kUnused},
    {"cls.predictions.transform.LayerNorm.beta", "", kUnused},
    {"cls.seq_relationship.weight", "", kUnused},
    {"cls.seq_relationship.bias", "", kUnused},
    {"bert.embeddings.position_ids", "", kUnused},
};
constexpr HfForm kForms[] = {{"bert", "bert", translate, kNames, {}}};

}  // namespace

const Architecture kBert = {"bert", configure, build, kForms};

}  // namespace optima::model
