// Llama 2 and 3, SmolLM2 and other files of architecture "llama" (Touvron et al. 2023,
// arXiv:2302.13971): pre-norm blocks, grouped-query attention with rotary positions on adjacent
// pairs (the converter permutes q and k), SwiGLU. The head is the embedding where the file has no
// "output.weight".
#include "base/text.h"
#include "model/arch/arch.h"
#include "model/hyper_parameters.h"

namespace optima::model {
namespace {

Result<RopeConfig> configure_rope(const Gguf& file, const HyperParameters& keys,
                                  const ModelConfig& config) {
  RopeConfig rope;
  rope.pairs = kernels::RopePairs::adjacent;
  OPTIMA_ASSIGN(rope.base, keys.real_or("rope.freq_base", 10000.0));
  OPTIMA_ASSIGN(rope.rotary_dim,
                keys.integer_or("rope.dimension_count", {2, config.head_dim}, config.head_dim));
  if (rope.rotary_dim % 2 != 0)
    return Status(Code::format, text("rope.dimension_count ", rope.rotary_dim, " is odd"));
  OPTIMA_ASSIGN(const std::string scaling, keys.string_or("rope.scaling.type", "none"));
  if (scaling == "linear") {
    OPTIMA_ASSIGN(const double factor, keys.real("rope.scaling.factor"));
    if (factor <= 0) return Status(Code::format, "rope.scaling.factor is 0");
    rope.frequency_scale = 1.0 / factor;
  } else if (scaling != "none") {
    return Status(Code::unsupported, text("rope scaling '", scaling,
                                          "' is not supported; supported are none and linear"));
  }
  if (const Tensor* factors = file.find("rope_freqs.weight")) {
    rope.frequency_factors.resize(static_cast<size_t>(rope.rotary_dim / 2));
    if (factors->type != kernels::WeightType::f32 || factors->rank != 1 ||
        factors->shape[0] != rope.rotary_dim / 2)
      return Status(Code::format, text("tensor 'rope_freqs.weight': wanted ", rope.rotary_dim / 2,
                                       " F32 values"));
    kernels::dequant_row(factors->type)(factors->data, rope.frequency_factors.data(),
                                        factors->shape[0]);
    for (const float factor : rope.frequency_factors)
      if (!(factor > 0)) return Status(Code::format, "tensor 'rope_freqs.weight': factor <= 0");
  }
  return rope;
}

Result<ModelConfig> configure(const Gguf& file) {
  const HyperParameters keys(file, "llama");
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_ASSIGN(const int32_t experts, keys.integer_or("expert_count", {0, 1 << 16}, 0));
  if (experts > 0)
    return Status(Code::unsupported, text("mixture of ", experts, " experts is not supported"));
  OPTIMA_ASSIGN(const RopeConfig rope, configure_rope(file, keys, config));
  config.ropes.push_back(rope);
  OPTIMA_ASSIGN(const int32_t window,
                keys.integer_or("attention.sliding_window", {0, INT32_MAX}, 0));
  for (LayerConfig& layer : config.layers) layer.window = window;
  return config;
}

// One block: x + attention(norm(x)), then + ffn(norm(.)).
Result<graph::ValueId> block(graph::Graph& g, const ModelConfig& c, Weights& w, int32_t layer,
                             graph::ValueId x) {
  const std::string at = text("blk.", layer, ".");
  const int64_t q_width = int64_t{c.heads} * c.head_dim;
  const int64_t kv_width = int64_t{c.kv_heads} * c.head_dim;
  OPTIMA_ASSIGN(const float* attention_norm, w.vector(at + "attn_norm.weight", c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wq, w.matrix(at + "attn_q.weight", q_width, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wk, w.matrix(at + "attn_k.weight", kv_width, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wv, w.matrix(at + "attn_v.weight", kv_width, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wo, w.matrix(at + "attn_output.weight", c.hidden, q_width));
  OPTIMA_ASSIGN(const float* ffn_norm, w.vector(at + "ffn_norm.weight", c.hidden));
  OPTIMA_ASSIGN(const graph::Weight gate, w.matrix(at + "ffn_gate.weight", c.ffn, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight up, w.matrix(at + "ffn_up.weight", c.ffn, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight down, w.matrix(at + "ffn_down.weight", c.hidden, c.ffn));

  const LayerConfig& kind = c.layers[static_cast<size_t>(layer)];
  const graph::ValueId h = g.rms_norm(x, attention_norm, c.hidden, c.rms_epsilon);
  const graph::ValueId q = g.rope(g.matmul(h, wq), kind.rope, c.head_dim);
  const graph::ValueId k = g.rope(g.matmul(h, wk), kind.rope, c.head_dim);
  const graph::ValueId v = g.matmul(h, wv);
  g.store_kv(k, v,
             {.k = -1, .v = -1, .layer = layer, .kv_heads = c.kv_heads, .head_dim = c.head_dim});
  const graph::ValueId a = g.attention(q, {.q = -1,
                                           .layer = layer,
                                           .heads = c.heads,
                                           .kv_heads = c.kv_heads,
                                           .head_dim = c.head_dim,
                                           .window = kind.window,
                                           .scale = c.attention_scale,
                                           .softcap = 0,
                                           .out = -1});
  const graph::ValueId mid = g.add(x, g.matmul(a, wo));
  const graph::ValueId f = g.rms_norm(mid, ffn_norm, c.hidden, c.rms_epsilon);
  const graph::ValueId act =
      g.gated_act(g.matmul(f, gate), g.matmul(f, up), kernels::GateAct::silu);
  return g.add(mid, g.matmul(act, down));
}

Result<graph::Graph> build(const ModelConfig& c, Weights& w) {
  graph::Graph g;
  for (const RopeConfig& rope : c.ropes) g.ropes.push_back(rope_table(rope));
  if (w.has("rope_freqs.weight")) {  // Read by configure(); counted as used here.
    OPTIMA_ASSIGN([[maybe_unused]] const float* factors,
                  w.vector("rope_freqs.weight", c.ropes.front().rotary_dim / 2));
  }
  OPTIMA_ASSIGN(const graph::Weight table, w.matrix("token_embd.weight", c.vocabulary, c.hidden));
  graph::ValueId x = g.embed(table, c.embedding_scale);
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    OPTIMA_ASSIGN(x, block(g, c, w, static_cast<int32_t>(layer), x));
  }
  OPTIMA_ASSIGN(const float* norm, w.vector("output_norm.weight", c.hidden));
  graph::Weight head = table;
  if (w.has("output.weight")) {
    OPTIMA_ASSIGN(head, w.matrix("output.weight", c.vocabulary, c.hidden));
  }
  const graph::ValueId last = g.rms_norm(g.gather_outputs(x), norm, c.hidden, c.rms_epsilon);
  g.logits = g.matmul(last, head);
  return g;
}

}  // namespace

const Architecture kLlama = {"llama", configure, build};

}  // namespace optima::model
