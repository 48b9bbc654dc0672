// The paper's second algorithm; surprises in bits, weights at the temperature of the request.
#include "sampling/mirostat.h"

#include <algorithm>
#include <cmath>

namespace optima::sampling {
void keep_unsurprising(float limit, std::vector<Candidate>& candidates) {
  if (candidates.empty()) return;
  const double least = mass_of(candidates) * std::exp2(-static_cast<double>(limit));
  float best = 0;
  for (const Candidate& candidate : candidates) best = std::max(best, candidate.weight);
  if (best < least) {
    const auto first =
        std::find_if(candidates.begin(), candidates.end(),
                     [&](const Candidate& candidate) { return candidate.weight == best; });
    const Candidate kept = *first;
    candidates.assign(1, kept);
    return;
  }
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < least; });
}

float next_limit(const Mirostat& mirostat, const std::vector<Candidate>& candidates,
                 int32_t token) {
  const double mass = mass_of(candidates);
  for (const Candidate& candidate : candidates) {
    if (candidate.token != token || candidate.weight <= 0) continue;
    const double surprise = -std::log2(candidate.weight / mass);
    return static_cast<float>(mirostat.limit - mirostat.rate * (surprise - mirostat.target));
  }
  return mirostat.limit;
}

}  // namespace optima::sampling
