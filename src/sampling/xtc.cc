// Two passes: who is above the threshold and which of them is the least; then the others go.
#include "sampling/xtc.h"

#include <algorithm>

namespace optima::sampling {

void exclude_top_choices(float threshold, std::vector<Candidate>& candidates) {
  double mass = 0;
  for (const Candidate& candidate : candidates) mass += candidate.weight;
  const double least_weight = threshold * mass;
  const Candidate* least = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight < least_weight) continue;
    const bool less = least == nullptr || candidate.logit < least->logit ||
                      (candidate.logit == least->logit && candidate.token > least->token);
    if (less) least = &candidate;
  }
  if (least == nullptr) return;
  const int32_t kept = least->token;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.weight >= least_weight && candidate.token != kept;
  });
}

}  // namespace optima::sampling
