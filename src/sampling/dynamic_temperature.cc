// Entropy from weights that need not sum to 1: ln(mass) - sum(w ln w) / mass.
#include "sampling/dynamic_temperature.h"

#include <algorithm>
#include <cmath>

namespace optima::sampling {

float dynamic_temperature(const DynamicTemperature& settings,
                          std::span<const Candidate> candidates) {
  const double low = std::max(0.0f, settings.centre - settings.range);
  const double high = settings.centre + settings.range;
  double mass = 0, sum = 0;
  for (const Candidate& candidate : candidates) {
    const double weight = candidate.weight;
    mass += weight;
    if (weight > 0) sum += weight * std::log(weight);
  }
  if (candidates.size() < 2 || mass == 0) return static_cast<float>(low);
  const double entropy = std::log(mass) - sum / mass;
  const double part = entropy / std::log(static_cast<double>(candidates.size()));
  return static_cast<float>(low +
                            (high - low) * std::pow(std::clamp(part, 0.0, 1.0), settings.exponent));
}

}  // namespace optima::sampling
