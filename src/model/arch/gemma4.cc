// Gemma 4, text (Google 2026): windowed layers and full ones with other head sizes; keys and values
// normalised and scores not scaled; the last layers may read the KV of earlier ones; each layer may
// have an input of its own, made of the token; experts beside the dense feed-forward. The rules are
// those of transformers' gemma4_text.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/arch/gemma.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr int32_t kFullRope = 0;
constexpr int32_t kWindowRope = 1;
constexpr int32_t kDefaultPattern = 6;  // every sixth layer sees all positions
constexpr double kDefaultFullBase = 1e6;
constexpr double kDefaultWindowBase = 1e4;
constexpr IntRange kSizes{1, 1 << 20};

// ---- configuration ----

// The last layers read what the last layer of their kind before them has stored.
Status share_kv(const HyperParameters& keys, ModelConfig& config) {
  const auto layers = static_cast<int32_t>(config.layers.size());
  OPTIMA_ASSIGN(const int32_t shared,
                keys.integer_or("attention.shared_kv_layers", {0, layers - 1}, 0));
  const int32_t first = layers - shared;
  for (int32_t i = first; i < layers; ++i) {
    LayerConfig& layer = config.layers[static_cast<size_t>(i)];
    int32_t owner = first - 1;
    while (owner >= 0 && config.layers[static_cast<size_t>(owner)].window != layer.window) --owner;
    if (owner < 0)
      return Status(Code::format, text("layer ", i, " shares KV, but no layer before layer ", first,
                                       " has its window of ", layer.window));
    const LayerConfig& from = config.layers[static_cast<size_t>(owner)];
    if (from.kv_heads != layer.kv_heads || from.head_dim != layer.head_dim)
      return Status(Code::format, text("layer ", i, " has ", layer.kv_heads, " kv heads of ",
                                       layer.head_dim, ", layer ", owner, ", whose KV it shares, ",
                                       from.kv_heads, " of ", from.head_dim));
    layer.kv_owner = owner;
  }
  return {};
}

// A GGUF file tells by the tensors that are there which layers' keys are their values too.
Status choose_values(const ModelFile& file, const HyperParameters& keys, ModelConfig& config) {
  OPTIMA_ASSIGN(const auto* flags, keys.flags("attention.keys_are_values"));
  if (flags != nullptr && flags->size() != config.layers.size())
    return Status(Code::format, text("attention.keys_are_values has ", flags->size(),
                                     " values for ", config.layers.size(), " layers"));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool same = flags != nullptr ? (*flags)[i] != 0
                                       : file.find(text("blk.", i, ".attn_v.weight")) == nullptr;
    if (same) config.layers[i].values = Values::keys_projection;
  }
  return {};
}

Status read_layers(const ModelFile& file, const HyperParameters& keys, ModelConfig& config) {
  OPTIMA_TRY(keys.read_windows(kDefaultPattern, config));
  OPTIMA_ASSIGN(const int32_t window_head_dim, keys.head_dim("_swa", config.head_dim));
  for (LayerConfig& layer : config.layers) {
    layer.rope = layer.window == 0 ? kFullRope : kWindowRope;
    if (layer.window != 0) layer.head_dim = window_head_dim;
  }
  OPTIMA_TRY(add_rope(file, keys,
                      {.pairs = kernels::RopePairs::halves,
                       .head_dim = config.head_dim,
                       .base_default = kDefaultFullBase},
                      config));
  OPTIMA_ASSIGN(const double base, keys.real_or("rope.freq_base_swa", kDefaultWindowBase));
  OPTIMA_ASSIGN(const int32_t rotated,
                keys.integer_or("rope.dimension_count_swa", {2, window_head_dim}, window_head_dim));
  config.ropes.push_back(plain_rope(base, rotated, kernels::RopePairs::halves));
  config.head_dim = std::max(config.head_dim, window_head_dim);
  OPTIMA_TRY(share_kv(keys, config));
  return choose_values(file, keys, config);
}

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(read_layers(file, keys, config));
  OPTIMA_TRY(keys.read_activation("gelu_tanh", config));
  config.qk_norm = QkNorm::each_head;
  config.attention_scale = 1.0f;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  OPTIMA_ASSIGN(const double cap, keys.real_or("final_logit_softcapping", 0));
  config.logit_softcap = static_cast<float>(cap);
  OPTIMA_ASSIGN(config.per_layer_input,
                keys.integer_or("embedding_length_per_layer_input", {0, kSizes.max}, 0));
  OPTIMA_ASSIGN(const int32_t experts, keys.integer_or("expert_count", {0, kSizes.max}, 0));
  if (experts > 0) {
    OPTIMA_TRY(keys.read_experts(config));
    OPTIMA_ASSIGN(config.moe.ffn, keys.integer("expert_feed_forward_length", kSizes));
    config.moe.scaled = true;
  }
  return config;
}

// ---- graph ----

// The inputs of all layers side by side: the token's own row, and what is made of its embedding.
Result<graph::ValueId> per_layer_inputs(graph::Graph& g, const ModelConfig& c, Weights& w,
                                        graph::ValueId embedding) {
  if (c.per_layer_input == 0) return graph::ValueId{-1};
  const int64_t width = c.per_layer_input;
  const int64_t all = width * static_cast<int64_t>(c.layers.size());
  OPTIMA_ASSIGN(const graph::Weight table,
                w.matrix("per_layer_token_embd.weight", c.vocabulary, all));
  OPTIMA_ASSIGN(const graph::Weight projection,
                w.matrix("per_layer_model_proj.weight", all, c.hidden));
  OPTIMA_ASSIGN(const float* norm, w.vector("per_layer_proj_norm.weight", width));
  const graph::ValueId token = g.embed(table, std::sqrt(static_cast<float>(width)));
  const graph::ValueId projected =
      g.scale(g.matmul(embedding, projection), 1.0f / std::sqrt(static_cast<float>(c.hidden)));
  const graph::ValueId context = g.rms_norm(projected, norm, width, c.norm_epsilon);
  return g.scale(g.add(context, token), static_cast<float>(std::sqrt(0.5)));
}

// What the layer's own input, gated by x, adds to x.
Result<graph::ValueId> add_per_layer_input(BlockBuilder& b, graph::ValueId x) {
  const int32_t width = b.config().per_layer_input;
  OPTIMA_ASSIGN(const graph::ValueId gate, b.linear(x, "inp_gate", width, Bias::none));
  const graph::ValueId input = b.graph().columns(b.side(), int64_t{b.index()} * width, width);
  const graph::ValueId inner = b.graph().gated_act(gate, input, b.config().gate);
  OPTIMA_ASSIGN(const graph::ValueId out, b.linear(inner, "proj", b.config().hidden, Bias::none));
  OPTIMA_ASSIGN(const graph::ValueId normed, b.norm(out, "post_norm"));
  return b.graph().add(x, normed);
}

Result<graph::ValueId> route(BlockBuilder& b, graph::ValueId x) {
  const int64_t hidden = b.config().hidden;
  OPTIMA_ASSIGN(const float* scale, b.weights().vector(b.full("ffn_gate_inp.scale"), hidden));
  const graph::ValueId normed = b.graph().rms_norm(x, scale, hidden, b.config().norm_epsilon);
  return b.route(b.graph().scale(normed, 1.0f / std::sqrt(static_cast<float>(hidden))), Bias::none);
}

// The dense feed-forward, with experts beside it where the model has some.
Result<graph::ValueId> feed_forward(BlockBuilder& b, graph::ValueId x) {
  OPTIMA_ASSIGN(const graph::ValueId h, b.norm(x, "ffn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId dense, b.feed_forward(h, {}));
  if (b.layer().feed_forward == FeedForwardKind::dense) return dense;
  OPTIMA_ASSIGN(const graph::ValueId dense_normed, b.norm(dense, "post_ffw_norm_1"));
  OPTIMA_ASSIGN(const graph::ValueId chosen, route(b, x));
  OPTIMA_ASSIGN(const graph::ValueId e, b.norm(x, "pre_ffw_norm_2"));
  OPTIMA_ASSIGN(const graph::ValueId mixed, b.experts(e, chosen));
  OPTIMA_ASSIGN(const graph::ValueId mixed_normed, b.norm(mixed, "post_ffw_norm_2"));
  return b.graph().add(dense_normed, mixed_normed);
}

Result<graph::ValueId> block(BlockBuilder& b, graph::ValueId x) {
  // Checkpoints may carry what a layer that shares KV would need if it did not.
  if (b.layer().kv_owner != b.index())
    for (const char* name : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"})
      b.weights().account_for(b.full(name));
  OPTIMA_ASSIGN(const graph::ValueId h, b.norm(x, "attn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId a, b.attention(h, {.value_norm = ValueNorm::each_head}));
  OPTIMA_ASSIGN(const graph::ValueId a_normed, b.norm(a, "post_attention_norm"));
  const graph::ValueId mid = b.graph().add(x, a_normed);
  OPTIMA_ASSIGN(const graph::ValueId f, feed_forward(b, mid));
  OPTIMA_ASSIGN(const graph::ValueId f_normed, b.norm(f, "post_ffw_norm"));
  graph::ValueId out = b.graph().add(mid, f_normed);
  if (b.side() >= 0) {
    OPTIMA_ASSIGN(out, add_per_layer_input(b, out));
  }
  const std::string scale = b.full("layer_output_scale.weight");
  if (!b.weights().has(scale)) return out;
  OPTIMA_ASSIGN(const float* factor, b.weights().vector(scale, 1));
  return b.graph().scale(out, *factor);
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {.block = block, .side = per_layer_inputs});
}

// ---- Hugging Face folders ----

// What a layer has where config.json leaves it out.
constexpr int64_t kHfHeadDim = 256;
constexpr int64_t kHfFullHeadDim = 512;
constexpr int64_t kHfPerLayerInput = 256;
constexpr double kHfFullPart = 0.25;  // of the pairs turn, without rope_parameters

struct HfSizes {
  int64_t head_dim = 0;
  int64_t kv_heads = 0;
};
struct HfLayers {
  std::vector<uint8_t> sliding;
  std::vector<HfSizes> sizes;
  bool keys_are_values = false;  // of full layers
};

// The last layer is a full one whatever layer_types says.
Result<std::vector<uint8_t>> read_layer_types(const HfConfig& config) {
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  std::vector<uint8_t> otherwise;
  for (int64_t i = 0; i < layers; ++i) otherwise.push_back((i + 1) % kDefaultPattern != 0 ? 1 : 0);
  OPTIMA_ASSIGN(std::vector<uint8_t> sliding, sliding_layers(config, otherwise));
  if (layers < 1 || static_cast<int64_t>(sliding.size()) != layers)
    return Status(Code::format, text("config.json: 'layer_types' has ", sliding.size(),
                                     " values for ", layers, " layers"));
  sliding.back() = 0;
  return sliding;
}

// per_layer_config, which older files lack: what it does not name is as in all layers.
Status override_sizes(const json::Value& overrides, HfLayers& layers) {
  const HfConfig by_layer(overrides);
  for (size_t i = 0; i < layers.sizes.size(); ++i) {
    const json::Value* entry = by_layer.find(text(i));
    if (entry == nullptr) continue;
    const HfConfig layer(*entry);
    OPTIMA_ASSIGN(const auto head_dim, layer.integer("head_dim"));
    OPTIMA_ASSIGN(const auto kv_heads, layer.integer("num_key_value_heads"));
    layers.sizes[i].head_dim = head_dim.value_or(layers.sizes[i].head_dim);
    layers.sizes[i].kv_heads = kv_heads.value_or(layers.sizes[i].kv_heads);
    OPTIMA_TRY(layer.all_read());
  }
  return by_layer.all_read();
}

Result<HfLayers> read_hf_layers(const HfConfig& config) {
  HfLayers out;
  OPTIMA_ASSIGN(out.sliding, read_layer_types(config));
  OPTIMA_ASSIGN(const auto same, config.boolean("attention_k_eq_v"));
  out.keys_are_values = same.value_or(false);
  OPTIMA_ASSIGN(const auto head_dim, config.integer("head_dim"));
  OPTIMA_ASSIGN(const int64_t kv_heads, config.need_integer("num_key_value_heads"));
  OPTIMA_ASSIGN(const auto full_head_dim, config.integer("global_head_dim"));
  OPTIMA_ASSIGN(const auto full_kv_heads, config.integer("num_global_key_value_heads"));
  out.sizes.assign(out.sliding.size(), {head_dim.value_or(kHfHeadDim), kv_heads});
  if (const json::Value* overrides = config.find("per_layer_config")) {
    OPTIMA_TRY(override_sizes(*overrides, out));
    return out;
  }
  for (size_t i = 0; i < out.sizes.size(); ++i) {
    if (out.sliding[i] != 0) continue;
    out.sizes[i].head_dim = full_head_dim.value_or(kHfFullHeadDim);
    if (out.keys_are_values) out.sizes[i].kv_heads = full_kv_heads.value_or(kv_heads);
  }
  return out;
}

// One head size for each kind of layer, as in GGUF files: a rotary table belongs to a kind.
Status write_layers(const HfConfig& config, const HfLayers& layers, MetadataWriter& out) {
  std::vector<int64_t> kv_heads;
  std::vector<uint8_t> keys_are_values;
  int64_t head_dims[2] = {0, 0};  // full, sliding
  for (size_t i = 0; i < layers.sizes.size(); ++i) {
    const HfSizes& sizes = layers.sizes[i];
    int64_t& head_dim = head_dims[layers.sliding[i]];
    if (head_dim != 0 && head_dim != sizes.head_dim)
      return Status(Code::unsupported, text("config.json: heads of ", sizes.head_dim, " and of ",
                                            head_dim, " in layers of one kind are not supported"));
    head_dim = sizes.head_dim;
    kv_heads.push_back(sizes.kv_heads);
    keys_are_values.push_back(layers.keys_are_values && layers.sliding[i] == 0 ? 1 : 0);
  }
  OPTIMA_TRY(out.integers("attention.head_count_kv", std::move(kv_heads)));
  OPTIMA_TRY(out.flags("attention.keys_are_values", std::move(keys_are_values)));
  for (const char* key : {"attention.key_length", "attention.value_length"}) {
    OPTIMA_TRY(out.integer(key, head_dims[0]));
    if (head_dims[1] != 0) OPTIMA_TRY(out.integer(text(key, "_swa"), head_dims[1]));
  }
  return write_windows(config, layers.sliding, out);
}

// Shared KV, and the wider feed-forwards that may come with it.
Status translate_sharing(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto shared, config.integer("num_kv_shared_layers"));
  OPTIMA_ASSIGN(const auto wide, config.boolean("use_double_wide_mlp"));
  OPTIMA_ASSIGN(const int64_t width, config.need_integer("intermediate_size"));
  if (width < 1 || width > kSizes.max)
    return Status(Code::format, text("config.json: 'intermediate_size' is ", width));
  OPTIMA_TRY(out.integer("attention.shared_kv_layers", shared.value_or(0)));
  std::vector<int64_t> widths;
  for (int64_t i = 0; i < layers; ++i)
    widths.push_back(wide.value_or(false) && i >= layers - shared.value_or(0) ? 2 * width : width);
  return out.integers("feed_forward_length", std::move(widths));
}

Status translate_experts(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_ASSIGN(const auto enabled, config.boolean("enable_moe_block"));
  if (!enabled.value_or(false)) {
    for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size"})
      config.find(key);
    return {};
  }
  OPTIMA_ASSIGN(const int64_t experts, config.need_integer("num_experts"));
  OPTIMA_TRY(out.integer("expert_count", experts));
  OPTIMA_ASSIGN(const int64_t used, config.need_integer("top_k_experts"));
  OPTIMA_TRY(out.integer("expert_used_count", used));
  OPTIMA_ASSIGN(const int64_t width, config.need_integer("moe_intermediate_size"));
  return out.integer("expert_feed_forward_length", width);
}

Status translate_ropes(const HfConfig& config, int64_t head_dim, MetadataWriter& out) {
  const json::Value* parameters = config.find("rope_parameters");
  if (parameters == nullptr) {
    OPTIMA_TRY(out.real("rope.freq_base_swa", kDefaultWindowBase));
    const json::Value full(json::Object{{"rope_type", json::Value(std::string("proportional"))},
                                        {"partial_rotary_factor", json::Value(kHfFullPart)},
                                        {"rope_theta", json::Value(kDefaultFullBase)}});
    return translate_rope_of(config, full, {.head_dim = head_dim}, out);
  }
  const json::Value* full = parameters->find("full_attention");
  const json::Value* sliding = parameters->find("sliding_attention");
  if (full == nullptr || sliding == nullptr)
    return Status(Code::format,
                  "config.json: 'rope_parameters' without full_attention and sliding_attention");
  OPTIMA_TRY(translate_sliding_rope(*sliding, out));
  return translate_rope_of(config, *full, {.head_dim = head_dim}, out);
}

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_sizes(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_activation", out));
  OPTIMA_TRY(expect_flag(config, "attention_bias", false));
  OPTIMA_TRY(expect_string(config, "use_bidirectional_attention", "vision"));  // texts are causal
  OPTIMA_ASSIGN(const auto cap, config.real("final_logit_softcapping"));
  if (cap) OPTIMA_TRY(out.real("final_logit_softcapping", *cap));
  OPTIMA_ASSIGN(const HfLayers layers, read_hf_layers(config));
  OPTIMA_TRY(write_layers(config, layers, out));
  OPTIMA_TRY(translate_ropes(config, layers.sizes.back().head_dim, out));
  OPTIMA_TRY(translate_sharing(config, out));
  OPTIMA_ASSIGN(const auto side, config.integer("hidden_size_per_layer_input"));
  OPTIMA_TRY(out.integer("embedding_length_per_layer_input", side.value_or(kHfPerLayerInput)));
  config.find("vocab_size_per_layer_input");  // shows in the tensor
  return translate_experts(config, out);
}

constexpr HfTensorName kNames[] = {
    {"model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
    {"model.per_layer_model_projection.weight", "per_layer_model_proj.weight"},
    {"model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight"},
    {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight"},
    {"model.layers.{}.post_feedforward_layernorm_1.weight", "blk.{}.post_ffw_norm_1.weight"},
    {"model.layers.{}.pre_feedforward_layernorm_2.weight", "blk.{}.pre_ffw_norm_2.weight"},
    {"model.layers.{}.post_feedforward_layernorm_2.weight", "blk.{}.post_ffw_norm_2.weight"},
    {"model.layers.{}.per_layer_input_gate.weight", "blk.{}.inp_gate.weight"},
    {"model.layers.{}.per_layer_projection.weight", "blk.{}.proj.weight"},
    {"model.layers.{}.post_per_layer_input_norm.weight", "blk.{}.post_norm.weight"},
    {"model.layers.{}.layer_scalar", "blk.{}.layer_output_scale.weight"},
    {"model.layers.{}.router.proj.weight", "blk.{}.ffn_gate_inp.weight"},
    {"model.layers.{}.router.scale", "blk.{}.ffn_gate_inp.scale"},
    {"model.layers.{}.router.per_expert_scale", "blk.{}.ffn_down_exps.scale"},
    {"model.layers.{}.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"},
    {"model.layers.{}.experts.down_proj", "blk.{}.ffn_down_exps.weight"},
};
constexpr HfForm kForms[] = {{"gemma4_text", "gemma4", translate, kNames, kLlamaNames}};

}  // namespace

const Architecture kGemma4 = {"gemma4", configure, build, kForms};

}  // namespace optima::model
