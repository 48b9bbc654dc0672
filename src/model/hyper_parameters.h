// Reads an architecture's hyper-parameters from metadata keys "<architecture>.<key>", with range
// checks: a missing or senseless value is an error that names the key.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"
#include "model/model_file.h"

namespace optima::model {

struct IntRange {
  int64_t min, max;
};

class HyperParameters {
 public:
  // Keys begin with the file's general.architecture.
  explicit HyperParameters(const ModelFile& file);

  Result<int32_t> integer(std::string_view key, IntRange range) const;
  Result<int32_t> integer_or(std::string_view key, IntRange range, int32_t otherwise) const;
  // A number for all layers, or a list with one for each.
  Result<std::vector<int32_t>> by_layer(std::string_view key, IntRange range, size_t layers) const;
  // attention.key_length<suffix> and attention.value_length<suffix>: equal, and a size that the
  // kernels take.
  Result<int32_t> head_dim(std::string_view suffix, int32_t otherwise) const;
  Result<double> real(std::string_view key) const;
  Result<double> real_or(std::string_view key, double otherwise) const;
  Result<bool> flag_or(std::string_view key, bool otherwise) const;
  Result<const std::vector<double>*> reals(std::string_view key) const;   // null = absent
  Result<const std::vector<uint8_t>*> flags(std::string_view key) const;  // null = absent
  Result<std::string> string_or(std::string_view key, std::string_view otherwise) const;

  // The parameters that every decoder has: sizes, heads, epsilon, context; layers with these
  // sizes, window 0 and rope 0; vocabulary from the embedding's rows; pooling, last by default.
  Result<ModelConfig> common(NormKind norm = NormKind::rms) const;
  // expert_count and expert_used_count; which layers have experts (expert_layers, all where the
  // file does not say). The width of an expert stays 0.
  Status read_experts(ModelConfig& config) const;
  // "activation" (silu, gelu_tanh, gelu_erf, relu), of feed-forwards with and without a gate.
  Status read_activation(std::string_view otherwise, ModelConfig& config) const;
  // pooling_type and (from folders) embedding.normalise; `otherwise` where the file names no
  // pooling.
  Status read_pooling(Pooling otherwise, ModelConfig& config) const;
  // attention.sliding_window for the layers that attention.sliding_window_pattern names: flags by
  // layer, or every n-th layer without; `otherwise` where the file says nothing (0 = all layers).
  Status read_windows(int32_t pattern_otherwise, ModelConfig& config) const;

 private:
  Status read_sizes(ModelConfig& config) const;
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  const ModelFile& file_;
  std::string prefix_;
};

}  // namespace optima::model
