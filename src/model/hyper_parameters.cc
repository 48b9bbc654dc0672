// Hyper-parameters out of GGUF metadata; see hyper_parameters.h. Limits are far above any model
// and keep products of sizes inside 64 bits.
#include "model/hyper_parameters.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace optima::model {
namespace {

constexpr IntRange kSizes{1, 1 << 20};
constexpr IntRange kLayers{1, 1024};
constexpr IntRange kHeads{1, 4096};
constexpr IntRange kContext{1, 1 << 28};
constexpr IntRange kHeadDims{8, 512};
constexpr IntRange kExperts{1, 1 << 14};

Result<int32_t> in_range(std::string_view key, int64_t value, IntRange range) {
  if (value < range.min || value > range.max)
    return Status(
        Code::format,
        text("metadata key '", key, "' is ", value, ", allowed are ", range.min, " to ", range.max),
        {value, -1, range.max});
  return static_cast<int32_t>(value);
}

}  // namespace

HyperParameters::HyperParameters(const ModelFile& file) : file_(file) {
  const auto name = file.metadata().string("general.architecture");
  if (name.ok()) prefix_ = std::string(name->value_or("")) + ".";
}

Result<int32_t> HyperParameters::integer(std::string_view key, IntRange range) const {
  OPTIMA_ASSIGN(const std::optional<int64_t> value, file_.metadata().integer(full(key)));
  if (!value) return Status(Code::format, text("metadata key '", full(key), "' is missing"));
  return in_range(full(key), *value, range);
}

Result<int32_t> HyperParameters::integer_or(std::string_view key, IntRange range,
                                            int32_t otherwise) const {
  if (file_.metadata().find(full(key)) == nullptr) return otherwise;
  return integer(key, range);
}

Result<std::vector<int32_t>> HyperParameters::by_layer(std::string_view key, IntRange range,
                                                       size_t layers) const {
  const MetadataValue* value = file_.metadata().find(full(key));
  if (value == nullptr || !std::holds_alternative<MetadataValue::Ints>(value->value)) {
    OPTIMA_ASSIGN(const int32_t number, integer(key, range));
    return std::vector<int32_t>(layers, number);
  }
  const auto& list = std::get<MetadataValue::Ints>(value->value);
  if (list.size() != layers)
    return Status(Code::format, text("metadata key '", full(key), "' has ", list.size(),
                                     " values for ", layers, " layers"));
  std::vector<int32_t> out;
  for (const int64_t item : list) {
    OPTIMA_ASSIGN(const int32_t number, in_range(full(key), item, range));
    out.push_back(number);
  }
  return out;
}

Result<int32_t> HyperParameters::head_dim(std::string_view suffix, int32_t otherwise) const {
  OPTIMA_ASSIGN(const int32_t keys,
                integer_or(text("attention.key_length", suffix), kHeadDims, otherwise));
  OPTIMA_ASSIGN(const int32_t values,
                integer_or(text("attention.value_length", suffix), kHeadDims, keys));
  if (keys % 8 != 0 || keys < kHeadDims.min || keys > kHeadDims.max || values != keys)
    return Status(Code::unsupported, text("head size ", keys, " (values ", values,
                                          "): supported are equal sizes, multiples of 8 from ",
                                          kHeadDims.min, " to ", kHeadDims.max));
  return keys;
}

Result<double> HyperParameters::real(std::string_view key) const {
  OPTIMA_ASSIGN(const std::optional<double> value, file_.metadata().real(full(key)));
  if (!value) return Status(Code::format, text("metadata key '", full(key), "' is missing"));
  if (!std::isfinite(*value) || *value < 0)
    return Status(Code::format, text("metadata key '", full(key), "' is not a finite number >= 0"));
  return *value;
}

Result<double> HyperParameters::real_or(std::string_view key, double otherwise) const {
  if (file_.metadata().find(full(key)) == nullptr) return otherwise;
  return real(key);
}

Result<bool> HyperParameters::flag_or(std::string_view key, bool otherwise) const {
  OPTIMA_ASSIGN(const std::optional<bool> value, file_.metadata().boolean(full(key)));
  return value.value_or(otherwise);
}

Result<const std::vector<double>*> HyperParameters::reals(std::string_view key) const {
  return file_.metadata().reals(full(key));
}

Result<const std::vector<uint8_t>*> HyperParameters::flags(std::string_view key) const {
  return file_.metadata().booleans(full(key));
}

Result<std::string> HyperParameters::string_or(std::string_view key,
                                               std::string_view otherwise) const {
  OPTIMA_ASSIGN(const std::optional<std::string_view> value, file_.metadata().string(full(key)));
  return std::string(value.value_or(otherwise));
}

Result<ModelConfig> HyperParameters::common(NormKind norm) const {
  ModelConfig config;
  config.architecture = prefix_.substr(0, prefix_.size() - 1);
  OPTIMA_ASSIGN(const std::optional<std::string_view> name,
                file_.metadata().string("general.name"));
  config.name = std::string(name.value_or(""));
  OPTIMA_ASSIGN(const int32_t layers, integer("block_count", kLayers));
  config.layers.resize(static_cast<size_t>(layers));
  OPTIMA_ASSIGN(config.context_length, integer("context_length", kContext));
  OPTIMA_ASSIGN(config.hidden, integer("embedding_length", kSizes));
  OPTIMA_TRY(read_sizes(config));
  config.norm = norm;
  OPTIMA_ASSIGN(const double epsilon,
                real(norm == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                           : "attention.layer_norm_epsilon"));
  config.norm_epsilon = static_cast<float>(epsilon);
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  const Tensor* embedding = file_.find("token_embd.weight");
  if (embedding == nullptr || embedding->rank != 2)
    return Status(Code::format, "tensor 'token_embd.weight' is missing or no matrix");
  if (embedding->shape[1] > INT32_MAX)
    return Status(Code::format, text("vocabulary of ", embedding->shape[1], " tokens"));
  config.vocabulary = static_cast<int32_t>(embedding->shape[1]);
  OPTIMA_TRY(read_pooling(Pooling::last, config));
  return config;
}

// Heads and feed-forward, of the model and of each layer.
Status HyperParameters::read_sizes(ModelConfig& config) const {
  const size_t layers = config.layers.size();
  OPTIMA_ASSIGN(const auto ffn, by_layer("feed_forward_length", kSizes, layers));
  config.ffn = *std::max_element(ffn.begin(), ffn.end());
  OPTIMA_ASSIGN(config.heads, integer("attention.head_count", kHeads));
  std::vector<int32_t> kv_heads(layers, config.heads);
  if (file_.metadata().find(full("attention.head_count_kv")) != nullptr) {
    OPTIMA_ASSIGN(kv_heads, by_layer("attention.head_count_kv", kHeads, layers));
  }
  config.kv_heads = *std::max_element(kv_heads.begin(), kv_heads.end());
  OPTIMA_ASSIGN(config.head_dim, head_dim("", config.hidden / config.heads));
  for (size_t i = 0; i < layers; ++i) {
    if (config.heads % kv_heads[i] != 0)
      return Status(Code::format,
                    text(config.heads, " heads are no multiple of ", kv_heads[i], " kv heads"));
    LayerConfig& layer = config.layers[i];
    layer.kv_heads = kv_heads[i];
    layer.head_dim = config.head_dim;
    layer.ffn = ffn[i];
    layer.kv_owner = static_cast<int32_t>(i);
  }
  return {};
}

Status HyperParameters::read_experts(ModelConfig& config) const {
  OPTIMA_ASSIGN(config.moe.experts, integer("expert_count", kExperts));
  OPTIMA_ASSIGN(config.moe.used, integer("expert_used_count", {1, config.moe.experts}));
  OPTIMA_ASSIGN(const auto* flags, file_.metadata().booleans(full("expert_layers")));
  if (flags != nullptr && flags->size() != config.layers.size())
    return Status(Code::format,
                  text("metadata key '", full("expert_layers"), "' has ", flags->size(),
                       " values for ", config.layers.size(), " layers"));
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (flags == nullptr || (*flags)[i] != 0)
      config.layers[i].feed_forward = FeedForwardKind::experts;
  return {};
}

Status HyperParameters::read_activation(std::string_view otherwise, ModelConfig& config) const {
  struct Row {
    std::string_view name;
    kernels::GateAct gate;
    kernels::Act act;
  };
  constexpr Row kRows[] = {{"silu", kernels::GateAct::silu, kernels::Act::silu},
                           {"gelu_tanh", kernels::GateAct::gelu_tanh, kernels::Act::gelu_tanh},
                           {"gelu_erf", kernels::GateAct::gelu_erf, kernels::Act::gelu_erf},
                           {"relu", kernels::GateAct::relu, kernels::Act::relu}};
  OPTIMA_ASSIGN(const std::string name, string_or("activation", otherwise));
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    config.gate.act = row.gate;
    config.act = row.act;
    return {};
  }
  return Status(Code::unsupported, text("metadata key '", full("activation"), "' is '", name, "'"));
}

Status HyperParameters::read_pooling(Pooling otherwise, ModelConfig& config) const {
  constexpr int32_t kNone = 0, kRank = 4;
  OPTIMA_ASSIGN(const int32_t type, integer_or("pooling_type", {kNone, kRank}, kNone));
  if (type == kRank)
    return Status(Code::unsupported, text("metadata key '", full("pooling_type"), "' is ", kRank,
                                          " (rank): the model scores pairs of texts"));
  config.pooling = type == kNone ? otherwise : static_cast<Pooling>(type);
  OPTIMA_ASSIGN(config.normalised_embedding, flag_or("embedding.normalise", false));
  return {};
}

Status HyperParameters::read_windows(int32_t pattern_otherwise, ModelConfig& config) const {
  OPTIMA_ASSIGN(const int32_t window, integer_or("attention.sliding_window", {0, INT32_MAX}, 0));
  if (window == 0) return {};
  const std::string key = full("attention.sliding_window_pattern");
  const MetadataValue* pattern = file_.metadata().find(key);
  if (pattern != nullptr && std::holds_alternative<MetadataValue::Bools>(pattern->value)) {
    const auto& flags = std::get<MetadataValue::Bools>(pattern->value);
    if (flags.size() != config.layers.size())
      return Status(Code::format, text("metadata key '", key, "' has ", flags.size(),
                                       " values for ", config.layers.size(), " layers"));
    for (size_t i = 0; i < flags.size(); ++i) config.layers[i].window = flags[i] != 0 ? window : 0;
    return {};
  }
  OPTIMA_ASSIGN(const int32_t every,
                integer_or("attention.sliding_window_pattern", {0, 1024}, pattern_otherwise));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool full_layer = every != 0 && (static_cast<int32_t>(i) + 1) % every == 0;
    config.layers[i].window = full_layer ? 0 : window;
  }
  return {};
}

}  // namespace optima::model
