// Makes one vector of the hidden rows of a prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/request.h"
#include "model/config.h"

namespace optima::engine {

class Pooler {
 public:
  Pooler(const EmbeddingSpec& spec, const model::ModelConfig& config);

  // Which rows of a prompt of `tokens` tokens are pooled: positions [first, last], all of them.
  int64_t first_row(int64_t tokens) const;
  int64_t last_row(int64_t tokens) const;

  // Takes the next of these rows.
  void add(std::span<const float> row);
  // After the last one. Fails with `internal` when a value is not finite.
  Result<std::vector<float>> finish() const;

 private:
  model::Pooling pooling_;
  bool normalised_;
  std::vector<double> sum_;
  int64_t rows_ = 0;
};

}  // namespace optima::engine
