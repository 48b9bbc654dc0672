// See pooler.h. Sums in double: the mean of many rows is as exact as one of them.
#include "engine/pooler.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace optima::engine {
namespace {

// Lengths below this are not made 1: there is no direction in rounding errors.
constexpr double kLengthMin = 1e-12;

bool normalises(Normalise choice, const model::ModelConfig& config) {
  return choice == Normalise::model ? config.normalised_embedding : choice == Normalise::l2;
}

}  // namespace

Pooler::Pooler(const EmbeddingSpec& spec, const model::ModelConfig& config)
    : pooling_(spec.pooling.value_or(config.pooling)),
      normalised_(normalises(spec.normalise, config)),
      sum_(static_cast<size_t>(config.hidden), 0.0) {}

int64_t Pooler::first_row(int64_t tokens) const {
  return pooling_ == model::Pooling::last ? tokens - 1 : 0;
}

int64_t Pooler::last_row(int64_t tokens) const {
  return pooling_ == model::Pooling::cls ? 0 : tokens - 1;
}

void Pooler::add(std::span<const float> row) {
  for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += static_cast<double>(row[i]);
  ++rows_;
}

Result<std::vector<float>> Pooler::finish() const {
  double squares = 0;
  for (const double value : sum_) squares += value * value;
  if (!std::isfinite(squares))
    return Status(Code::internal, text("the sum of ", rows_, " hidden rows is not finite"));
  const double divisor =
      normalised_ ? std::max(std::sqrt(squares), kLengthMin) : static_cast<double>(rows_);
  std::vector<float> out;
  out.reserve(sum_.size());
  for (const double value : sum_) out.push_back(static_cast<float>(value / divisor));
  return out;
}

}  // namespace optima::engine
