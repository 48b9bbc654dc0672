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

}  // namespace

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

Result<std::string> HyperParameters::string_or(std::string_view key,
                                               std::string_view otherwise) const {
  OPTIMA_ASSIGN(const std::optional<std::string_view> value, file_.metadata().string(full(key)));
  return std::string(value.value_or(otherwise));
}

Result<ModelConfig> HyperParameters::common() const {
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
  OPTIMA_ASSIGN(const double epsilon, real("attention.layer_norm_rms_epsilon"));
  config.rms_epsilon = static_cast<float>(epsilon);
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  const Tensor* embedding = file_.find("token_embd.weight");
  if (embedding == nullptr || embedding->rank != 2)
    return Status(Code::format, "tensor 'token_embd.weight' is missing or no matrix");
  if (embedding->shape[1] > INT32_MAX)
    return Status(Code::format, text("vocabulary of ", embedding->shape[1], " tokens"));
  config.vocabulary = static_cast<int32_t>(embedding->shape[1]);
  return config;
}

}  // namespace optima::model
