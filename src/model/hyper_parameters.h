// Reads an architecture's hyper-parameters from metadata keys "<architecture>.<key>", with range
// checks: a missing or senseless value is an error that names the key.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"
#include "model/gguf.h"

namespace optima::model {

struct IntRange {
  int64_t min, max;
};

class HyperParameters {
 public:
  HyperParameters(const Gguf& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  Result<int32_t> integer(std::string_view key, IntRange range) const;
  Result<int32_t> integer_or(std::string_view key, IntRange range, int32_t otherwise) const;
  Result<double> real(std::string_view key) const;
  Result<double> real_or(std::string_view key, double otherwise) const;
  Result<std::string> string_or(std::string_view key, std::string_view otherwise) const;

  // The parameters that every decoder has: sizes, heads, epsilon, context; layers with window 0
  // and rope 0; vocabulary from the embedding's rows.
  Result<ModelConfig> common() const;

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  const Gguf& file_;
  std::string prefix_;
};

}  // namespace optima::model
