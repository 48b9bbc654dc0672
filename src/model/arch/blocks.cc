// Decoder blocks out of parts; see blocks.h.
#include "model/arch/blocks.h"

#include "base/text.h"

namespace optima::model {

using graph::ValueId;

BlockBuilder::BlockBuilder(graph::Graph& graph, const ModelConfig& config, Weights& weights,
                           int32_t layer, ValueId side)
    : graph_(graph),
      config_(config),
      weights_(weights),
      layer_(layer),
      side_(side),
      prefix_(text("blk.", layer, ".")) {}

namespace {

Result<ValueId> apply_norm(graph::Graph& g, const ModelConfig& c, Weights& w, ValueId x,
                           const std::string& name) {
  const int64_t width = g.values[static_cast<size_t>(x)].width;
  OPTIMA_ASSIGN(const float* weight, w.vector(name + ".weight", width));
  if (c.norm == NormKind::rms) return g.rms_norm(x, weight, width, c.norm_epsilon);
  const float* bias = nullptr;
  if (w.has(name + ".bias")) {
    OPTIMA_ASSIGN(bias, w.vector(name + ".bias", width));
  }
  return g.layer_norm(x, weight, bias, c.norm_epsilon);
}

}  // namespace

Result<ValueId> BlockBuilder::norm(ValueId x, std::string_view name) {
  return apply_norm(graph_, config_, weights_, x, full(name));
}

Result<ValueId> BlockBuilder::add_bias(ValueId x, std::string_view name, Bias bias) {
  const std::string tensor = full(name) + ".bias";
  if (bias == Bias::none || (bias == Bias::if_present && !weights_.has(tensor))) return x;
  OPTIMA_ASSIGN(const float* values,
                weights_.vector(tensor, graph_.values[static_cast<size_t>(x)].width));
  return graph_.add_bias(x, values);
}

Result<ValueId> BlockBuilder::linear(ValueId x, std::string_view name, int64_t rows, Bias bias) {
  const int64_t columns = graph_.values[static_cast<size_t>(x)].width;
  OPTIMA_ASSIGN(const graph::Weight weight, weights_.matrix(full(name) + ".weight", rows, columns));
  return add_bias(graph_.matmul(x, weight), name, bias);
}

Result<BlockBuilder::Qkv> BlockBuilder::project(ValueId h, const AttentionParts& parts) {
  if (parts.projections == Projections::fused) return project_fused(h, parts.qkv_bias);
  const int64_t q_width = int64_t{config_.heads} * layer().head_dim;
  const int64_t kv_width = int64_t{layer().kv_heads} * layer().head_dim;
  Qkv out{-1, -1, -1};
  OPTIMA_ASSIGN(out.q, linear(h, "attn_q", q_width, parts.qkv_bias));
  if (shares_kv()) return out;
  OPTIMA_ASSIGN(out.k, linear(h, "attn_k", kv_width, parts.qkv_bias));
  out.v = out.k;
  if (layer().values == Values::projection) {
    OPTIMA_ASSIGN(out.v, linear(h, "attn_v", kv_width, parts.qkv_bias));
  }
  return out;
}

// The rows of one tensor are three weights: no copy, and the fused product comes back when matmuls
// of one input are grouped.
Result<BlockBuilder::Qkv> BlockBuilder::project_fused(ValueId h, Bias bias) {
  const int64_t q_width = int64_t{config_.heads} * layer().head_dim;
  const int64_t kv_width = int64_t{layer().kv_heads} * layer().head_dim;
  graph::Weight shape;
  shape.rows = q_width + 2 * kv_width;
  shape.columns = config_.hidden;
  const float* values = nullptr;
  const std::string bias_name = full("attn_qkv.bias");
  if (bias == Bias::required || (bias == Bias::if_present && weights_.has(bias_name))) {
    OPTIMA_ASSIGN(values, weights_.vector(bias_name, shape.rows));
  }
  ValueId parts[3];
  const int64_t widths[3] = {q_width, kv_width, kv_width};
  int64_t begin = 0;
  for (size_t i = 0; i < 3; ++i) {
    OPTIMA_ASSIGN(const graph::Weight weight,
                  weights_.rows(full("attn_qkv.weight"), shape, begin, widths[i]));
    parts[i] = graph_.matmul(h, weight);
    if (values != nullptr) parts[i] = graph_.add_bias(parts[i], values + begin);
    begin += widths[i];
  }
  return Qkv{parts[0], parts[1], parts[2]};
}

Result<ValueId> BlockBuilder::head_norm(ValueId x, std::string_view name) {
  if (config_.qk_norm == QkNorm::none) return x;
  const int64_t width = config_.qk_norm == QkNorm::each_head
                            ? layer().head_dim
                            : graph_.values[static_cast<size_t>(x)].width;
  OPTIMA_ASSIGN(const float* weight, weights_.vector(full(name) + ".weight", width));
  return graph_.rms_norm(x, weight, width, config_.norm_epsilon);
}

Result<ValueId> BlockBuilder::attention(ValueId h, const AttentionParts& parts) {
  const int64_t head_dim = layer().head_dim;
  OPTIMA_ASSIGN(Qkv qkv, project(h, parts));
  OPTIMA_ASSIGN(qkv.q, head_norm(qkv.q, "attn_q_norm"));
  if (!shares_kv()) {
    if (parts.value_norm == ValueNorm::each_head)
      qkv.v = graph_.rms_norm(qkv.v, nullptr, head_dim, config_.norm_epsilon);
    OPTIMA_ASSIGN(qkv.k, head_norm(qkv.k, "attn_k_norm"));
  }
  if (layer().rope != kNoRope) {
    qkv.q = graph_.rope(qkv.q, layer().rope, head_dim);
    if (!shares_kv()) qkv.k = graph_.rope(qkv.k, layer().rope, head_dim);
  }
  if (!shares_kv()) graph_.store_kv(qkv.k, qkv.v, {-1, -1, layer_, layer().kv_heads, head_dim});
  OPTIMA_ASSIGN(const ValueId mixed, attend(qkv.q, parts.sinks));
  return linear(mixed, "attn_output", config_.hidden, parts.output_bias);
}

// softmax(mask(q·keys)) · values, over the cache of the layer that owns it.
Result<ValueId> BlockBuilder::attend(ValueId q, Sinks sinks) {
  const graph::KvRead kv{layer().kv_owner, config_.heads, layer().kv_heads, layer().head_dim};
  ValueId scores = graph_.scores(q, kv, config_.attention_scale * layer().attention_scale_factor);
  if (config_.attention_softcap > 0) scores = graph_.softcap(scores, config_.attention_softcap);
  if (config_.mask == kernels::AttentionMask::causal)
    scores = graph_.mask(scores, graph::MaskKind::causal, 0);
  if (layer().window > 0) scores = graph_.mask(scores, graph::MaskKind::sliding, layer().window);
  const float* sink_scores = nullptr;
  if (sinks == Sinks::required) {
    OPTIMA_ASSIGN(sink_scores, weights_.vector(full("attn_sinks.weight"), config_.heads));
  }
  return graph_.weigh_values(graph_.softmax(scores, sink_scores), kv);
}

Result<ValueId> BlockBuilder::feed_forward(ValueId h, const FeedForwardParts& parts) {
  const int32_t ffn = layer().ffn;
  ValueId inner = -1;
  if (parts.kind == FeedForward::plain) {
    OPTIMA_ASSIGN(const ValueId up, linear(h, "ffn_up", ffn, parts.bias));
    inner = graph_.activate(up, config_.act);
  } else if (parts.kind == FeedForward::gated) {
    OPTIMA_ASSIGN(const ValueId gate, linear(h, "ffn_gate", ffn, parts.bias));
    OPTIMA_ASSIGN(const ValueId up, linear(h, "ffn_up", ffn, parts.bias));
    inner = graph_.gated_act(gate, up, config_.gate);
  } else {
    graph::Weight shape;
    shape.rows = 2 * int64_t{ffn};
    shape.columns = config_.hidden;
    const std::string name = full("ffn_up.weight");
    OPTIMA_ASSIGN(const graph::Weight gate, weights_.rows(name, shape, 0, ffn));
    OPTIMA_ASSIGN(const graph::Weight up, weights_.rows(name, shape, ffn, ffn));
    const ValueId gate_out = graph_.matmul(h, gate);
    inner = graph_.gated_act(gate_out, graph_.matmul(h, up), config_.gate);
  }
  return linear(inner, "ffn_down", config_.hidden, parts.bias);
}

// Some files have the gates' rows and then up's in one tensor.
ExpertNames BlockBuilder::expert_names(std::string_view name) const {
  const std::string both = full("ffn_gate_up_exps.weight");
  if (name != "ffn_down" && weights_.has(both)) {
    const bool gate = name == "ffn_gate";
    return {both, "", gate ? 0 : config_.moe.ffn, gate ? config_.moe.ffn : 0};
  }
  return {full(name) + "_exps.weight", full(name) + ".", 0, 0};
}

Result<ValueId> BlockBuilder::expert_product(ValueId in, ValueId route, std::string_view name,
                                             graph::ExpertMatmul shape) {
  const graph::Weight wanted = shape.experts.front();
  OPTIMA_ASSIGN(shape.experts, weights_.experts(expert_names(name), config_.moe.experts,
                                                wanted.rows, wanted.columns));
  const std::string bias = full(name) + "_exps.bias";
  if (weights_.has(bias)) {
    OPTIMA_ASSIGN(const float* biases, weights_.vectors(bias, config_.moe.experts, wanted.rows));
    for (int64_t e = 0; e < config_.moe.experts; ++e)
      shape.biases.push_back(biases + e * wanted.rows);
  }
  return graph_.expert_matmul(in, route, std::move(shape));
}

Result<ValueId> BlockBuilder::route(ValueId h, Bias bias) {
  const MoeConfig& moe = config_.moe;
  OPTIMA_ASSIGN(const ValueId logits, linear(h, "ffn_gate_inp", moe.experts, bias));
  const float* scales = nullptr;
  if (moe.scaled) {
    OPTIMA_ASSIGN(scales, weights_.vector(full("ffn_down_exps.scale"), moe.experts));
  }
  return graph_.route(logits, {-1, moe.used, moe.scoring, moe.weights, scales, -1});
}

Result<ValueId> BlockBuilder::experts(ValueId h, ValueId route) {
  const MoeConfig& moe = config_.moe;
  graph::Weight inner_shape;
  inner_shape.rows = moe.ffn;
  inner_shape.columns = config_.hidden;
  graph::Weight outer_shape;
  outer_shape.rows = config_.hidden;
  outer_shape.columns = moe.ffn;
  const graph::ExpertMatmul inner{-1, -1, graph::ExpertInput::shared, moe.used, {inner_shape},
                                  {}, -1};
  const graph::ExpertMatmul outer{-1, -1, graph::ExpertInput::per_slot, moe.used, {outer_shape},
                                  {}, -1};
  OPTIMA_ASSIGN(const ValueId gate, expert_product(h, route, "ffn_gate", inner));
  OPTIMA_ASSIGN(const ValueId up, expert_product(h, route, "ffn_up", inner));
  const ValueId act = graph_.gated_act(gate, up, config_.gate);
  OPTIMA_ASSIGN(const ValueId slots, expert_product(act, route, "ffn_down", outer));
  return graph_.combine_experts(slots, route, moe.used);
}

Result<graph::Graph> build_graph(const ModelConfig& c, Weights& w, const DecoderParts& parts) {
  graph::Graph g;
  g.ropes = c.ropes;
  // Read with the configuration.
  for (const char* name :
       {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
    w.account_for(name);
  OPTIMA_ASSIGN(const graph::Weight table, w.matrix("token_embd.weight", c.vocabulary, c.hidden));
  ValueId x = g.embed(table, c.embedding_scale);
  if (parts.positions == Positions::learned) {
    OPTIMA_ASSIGN(const graph::Weight positions,
                  w.matrix("position_embd.weight", c.context_length, c.hidden));
    x = g.add_position(x, positions);
  }
  ValueId side = -1;
  if (parts.side != nullptr) {
    OPTIMA_ASSIGN(side, parts.side(g, c, w, x));
  }
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    BlockBuilder block(g, c, w, static_cast<int32_t>(layer), side);
    OPTIMA_ASSIGN(x, parts.block(block, x));
  }
  graph::Weight head = table;
  if (w.has("output.weight")) {
    OPTIMA_ASSIGN(head, w.matrix("output.weight", c.vocabulary, c.hidden));
  }
  OPTIMA_ASSIGN(g.hidden, apply_norm(g, c, w, g.gather_outputs(x), "output_norm"));
  g.result = g.matmul(g.hidden, head);
  if (c.logit_softcap > 0) g.result = g.softcap(g.result, c.logit_softcap);
  return g;
}

Result<graph::Graph> build_encoder_graph(const ModelConfig& c, Weights& w,
                                         const EncoderParts& parts) {
  graph::Graph g;
  OPTIMA_ASSIGN(ValueId x, parts.embed(g, c, w));
  OPTIMA_ASSIGN(x, apply_norm(g, c, w, x, "token_embd_norm"));
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    BlockBuilder block(g, c, w, static_cast<int32_t>(layer), -1);
    OPTIMA_ASSIGN(x, parts.block(block, x));
  }
  g.hidden = g.result = g.gather_outputs(x);
  return g;
}

Result<ValueId> pre_norm_block(BlockBuilder& block, ValueId x, const AttentionParts& attention,
                               const FeedForwardParts& feed_forward) {
  OPTIMA_ASSIGN(const ValueId h, block.norm(x, "attn_norm"));
  OPTIMA_ASSIGN(const ValueId a, block.attention(h, attention));
  const ValueId mid = block.graph().add(x, a);
  OPTIMA_ASSIGN(const ValueId f, block.norm(mid, "ffn_norm"));
  if (block.layer().feed_forward == FeedForwardKind::experts) {
    OPTIMA_ASSIGN(const ValueId route, block.route(f, Bias::none));
    OPTIMA_ASSIGN(const ValueId mixed, block.experts(f, route));
    return block.graph().add(mid, mixed);
  }
  OPTIMA_ASSIGN(const ValueId dense, block.feed_forward(f, feed_forward));
  return block.graph().add(mid, dense);
}

}  // namespace optima::model
