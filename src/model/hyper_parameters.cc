// Hyper-parameters out of GGUF metadata; see hyper_parameters.h. Limits are far above any model
// and keep products of sizes inside 64 bits.
#include "model/hyper_parameters.h"

#include <cmath>

#include "base/text.h"

namespace optima::model {
namespace {

constexpr IntRange kSizes{1, 1 << 20};
constexpr IntRange kLayers{1, 1024};
constexpr IntRange kHeads{1, 4096};
constexpr IntRange kContext{1, 1 << 28};
constexpr IntRange kHeadDims{8, 256};
constexpr IntRange kExperts{1, 1 << 14};

}  // namespace

HyperParameters::HyperParameters(const ModelFile& file) : file_(file) {
  const auto name = file.metadata().string("general.architecture");
  if (name.ok()) prefix_ = std::string(name->value_or("")) + ".";
}

Result<int32_t> HyperParameters::integer(std::string_view key, IntRange range) const {
  OPTIMA_ASSIGN(const std::optional<int64_t> value, file_.metadata().integer(full(key)));
  if (!value) return Status(Code::format, text("metadata key '", full(key), "' is missing"));
  if (*value < range.min || *value > range.max)
    return Status(Code::format,
                  text("metadata key '", full(key), "' is ", *value, ", allowed are ", range.min,
                       " to ", range.max),
                  {*value, -1, range.max});
  return static_cast<int32_t>(*value);
}

Result<int32_t> HyperParameters::integer_or(std::string_view key, IntRange range,
                                            int32_t otherwise) const {
  if (file_.metadata().find(full(key)) == nullptr) return otherwise;
  return integer(key, range);
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
  OPTIMA_ASSIGN(config.ffn, integer("feed_forward_length", kSizes));
  OPTIMA_ASSIGN(config.heads, integer("attention.head_count", kHeads));
  OPTIMA_ASSIGN(config.kv_heads, integer_or("attention.head_count_kv", kHeads, config.heads));
  if (config.heads % config.kv_heads != 0)
    return Status(Code::format,
                  text(config.heads, " heads are no multiple of ", config.kv_heads, " kv heads"));
  OPTIMA_ASSIGN(config.head_dim,
                integer_or("attention.key_length", kHeadDims, config.hidden / config.heads));
  OPTIMA_ASSIGN(const int32_t value_dim,
                integer_or("attention.value_length", kHeadDims, config.head_dim));
  if (config.head_dim % 8 != 0 || config.head_dim < kHeadDims.min ||
      config.head_dim > kHeadDims.max || value_dim != config.head_dim)
    return Status(Code::unsupported, text("head size ", config.head_dim, " (values ", value_dim,
                                          "): supported are equal sizes, multiples of 8 from ",
                                          kHeadDims.min, " to ", kHeadDims.max));
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
  return config;
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
