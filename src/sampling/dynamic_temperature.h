// A temperature that follows the entropy of the distribution: cool where the model is sure, warm
// where it is not.
//   kalomaze 2023, "Dynamic temperature sampling", koboldcpp; in llama.cpp as "temp-ext"
#pragma once

#include <span>

#include "sampling/truncation.h"

namespace optima::sampling {

struct DynamicTemperature {
  float centre = 1;
  float range = 0;     // from centre - range (not below 0) to centre + range
  float exponent = 1;  // of the entropy, as part of the largest possible one
};

// low + (high - low) * (entropy / ln(count)) ^ exponent over the candidates, whose weights are
// those at temperature 1. With a single candidate: the low end.
float dynamic_temperature(const DynamicTemperature& settings,
                          std::span<const Candidate> candidates);

}  // namespace optima::sampling
