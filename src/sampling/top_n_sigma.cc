// The deviation is that of the whole population, in double, about the mean in a second pass: logits
// far from zero lose nothing.
#include "sampling/top_n_sigma.h"

#include <cmath>
#include <limits>

namespace optima::sampling {

float top_n_sigma_floor(float n, std::span<const float> logits, float highest) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  double sum = 0, count = 0;
  for (const float logit : logits) {
    const bool possible = logit >= kLowest;
    sum += possible ? logit : 0.0;
    count += possible ? 1.0 : 0.0;
  }
  if (count == 0) return kLowest;
  const double mean = sum / count;
  double squares = 0;
  for (const float logit : logits) {
    const double distance = logit >= kLowest ? logit - mean : 0.0;
    squares += distance * distance;
  }
  return static_cast<float>(highest - n * std::sqrt(squares / count));
}

}  // namespace optima::sampling
