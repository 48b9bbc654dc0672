// Gemma 3, text (Gemma Team 2025, arXiv:2503.19786): five windowed layers to one global, each kind
// with its own rotary base; norms before and after attention and feed-forward; norms on q and k
// heads; embeddings scaled by sqrt(hidden); GELU gate. Norm weights in GGUF files hold 1 + w.
#include <cmath>

#include "base/text.h"
#include "model/arch/arch.h"
#include "model/hyper_parameters.h"

namespace optima::model {
namespace {

constexpr int32_t kGlobalRope = 0;
constexpr int32_t kLocalRope = 1;
constexpr int32_t kDefaultPattern = 6;     // every sixth layer sees all positions
constexpr double kDefaultLocalBase = 1e4;  // files written before the key existed

Result<ModelConfig> configure(const Gguf& file) {
  const HyperParameters keys(file, "gemma3");
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  RopeConfig global;
  global.pairs = kernels::RopePairs::halves;
  global.rotary_dim = config.head_dim;
  RopeConfig local = global;
  OPTIMA_ASSIGN(global.base, keys.real_or("rope.freq_base", 1e6));
  OPTIMA_ASSIGN(local.base, keys.real_or("rope.freq_base_swa", kDefaultLocalBase));
  OPTIMA_ASSIGN(const std::string scaling, keys.string_or("rope.scaling.type", "none"));
  if (scaling == "linear") {  // Of the global layers alone.
    OPTIMA_ASSIGN(const double factor, keys.real("rope.scaling.factor"));
    if (factor <= 0) return Status(Code::format, "rope.scaling.factor is 0");
    global.frequency_scale = 1.0 / factor;
  } else if (scaling != "none") {
    return Status(Code::unsupported, text("rope scaling '", scaling,
                                          "' is not supported; supported are none and linear"));
  }
  config.ropes = {global, local};

  OPTIMA_ASSIGN(const int32_t window, keys.integer("attention.sliding_window", {1, INT32_MAX}));
  OPTIMA_ASSIGN(const int32_t pattern,
                keys.integer_or("attention.sliding_window_pattern", {1, 1024}, kDefaultPattern));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool is_global = (static_cast<int32_t>(i) + 1) % pattern == 0;
    config.layers[i] = is_global ? LayerConfig{0, kGlobalRope} : LayerConfig{window, kLocalRope};
  }
  OPTIMA_ASSIGN(const double softcap, keys.real_or("final_logit_softcapping", 0));
  if (softcap > 0)
    return Status(Code::unsupported,
                  text("final_logit_softcapping ", softcap, " in a gemma3 file"));
  // The 27B model (62 layers) scales queries by its hidden size per head, all others by head size.
  constexpr size_t kLayersOf27B = 62;
  if (config.layers.size() == kLayersOf27B)
    config.attention_scale =
        1.0f / std::sqrt(static_cast<float>(config.hidden) / static_cast<float>(config.heads));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  return config;
}

// x + post_norm(attention(norm(x)))
Result<graph::ValueId> attention_block(graph::Graph& g, const ModelConfig& c, Weights& w,
                                       int32_t layer, graph::ValueId x) {
  const std::string at = text("blk.", layer, ".");
  const int64_t q_width = int64_t{c.heads} * c.head_dim;
  const int64_t kv_width = int64_t{c.kv_heads} * c.head_dim;
  OPTIMA_ASSIGN(const float* norm, w.vector(at + "attn_norm.weight", c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wq, w.matrix(at + "attn_q.weight", q_width, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wk, w.matrix(at + "attn_k.weight", kv_width, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wv, w.matrix(at + "attn_v.weight", kv_width, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight wo, w.matrix(at + "attn_output.weight", c.hidden, q_width));
  OPTIMA_ASSIGN(const float* q_norm, w.vector(at + "attn_q_norm.weight", c.head_dim));
  OPTIMA_ASSIGN(const float* k_norm, w.vector(at + "attn_k_norm.weight", c.head_dim));
  OPTIMA_ASSIGN(const float* post_norm, w.vector(at + "post_attention_norm.weight", c.hidden));

  const LayerConfig& kind = c.layers[static_cast<size_t>(layer)];
  const graph::ValueId h = g.rms_norm(x, norm, c.hidden, c.rms_epsilon);
  const graph::ValueId q_raw = g.rms_norm(g.matmul(h, wq), q_norm, c.head_dim, c.rms_epsilon);
  const graph::ValueId k_raw = g.rms_norm(g.matmul(h, wk), k_norm, c.head_dim, c.rms_epsilon);
  const graph::ValueId v = g.matmul(h, wv);
  const graph::ValueId q = g.rope(q_raw, kind.rope, c.head_dim);
  const graph::ValueId k = g.rope(k_raw, kind.rope, c.head_dim);
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
  return g.add(x, g.rms_norm(g.matmul(a, wo), post_norm, c.hidden, c.rms_epsilon));
}

// x + post_norm(ffn(norm(x)))
Result<graph::ValueId> ffn_block(graph::Graph& g, const ModelConfig& c, Weights& w, int32_t layer,
                                 graph::ValueId x) {
  const std::string at = text("blk.", layer, ".");
  OPTIMA_ASSIGN(const float* norm, w.vector(at + "ffn_norm.weight", c.hidden));
  OPTIMA_ASSIGN(const graph::Weight gate, w.matrix(at + "ffn_gate.weight", c.ffn, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight up, w.matrix(at + "ffn_up.weight", c.ffn, c.hidden));
  OPTIMA_ASSIGN(const graph::Weight down, w.matrix(at + "ffn_down.weight", c.hidden, c.ffn));
  OPTIMA_ASSIGN(const float* post_norm, w.vector(at + "post_ffw_norm.weight", c.hidden));

  const graph::ValueId h = g.rms_norm(x, norm, c.hidden, c.rms_epsilon);
  const graph::ValueId act =
      g.gated_act(g.matmul(h, gate), g.matmul(h, up), kernels::GateAct::gelu_tanh);
  return g.add(x, g.rms_norm(g.matmul(act, down), post_norm, c.hidden, c.rms_epsilon));
}

Result<graph::Graph> build(const ModelConfig& c, Weights& w) {
  graph::Graph g;
  for (const RopeConfig& rope : c.ropes) g.ropes.push_back(rope_table(rope));
  OPTIMA_ASSIGN(const graph::Weight table, w.matrix("token_embd.weight", c.vocabulary, c.hidden));
  graph::ValueId x = g.embed(table, c.embedding_scale);
  for (size_t i = 0; i < c.layers.size(); ++i) {
    const auto layer = static_cast<int32_t>(i);
    OPTIMA_ASSIGN(x, attention_block(g, c, w, layer, x));
    OPTIMA_ASSIGN(x, ffn_block(g, c, w, layer, x));
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

const Architecture kGemma3 = {"gemma3", configure, build};

}  // namespace optima::model
