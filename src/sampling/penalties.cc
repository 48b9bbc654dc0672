// Bias and penalties. The occurrences are counted in an array over the vocabulary, which a second
// walk over the same tokens uses up and clears: linear in the tokens looked at, whatever the
// vocabulary, and nothing is allocated after the first step.
#include "sampling/penalties.h"

#include <utility>

namespace optima::sampling {

void apply_bias(std::span<const std::pair<int32_t, float>> bias, std::span<float> logits) {
  for (const auto& [token, value] : bias) logits[static_cast<size_t>(token)] += value;
}

void apply_penalties(const Penalties& penalties, std::span<const int32_t> recent,
                     std::vector<int32_t>& counts, std::span<float> logits) {
  counts.resize(logits.size());
  const auto predictable = [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < logits.size();
  };
  for (const int32_t token : recent)
    if (predictable(token)) ++counts[static_cast<size_t>(token)];
  const float repetition = penalties.repetition == 0 ? 1.0f : penalties.repetition;
  for (const int32_t token : recent) {
    if (!predictable(token)) continue;
    const int32_t count = std::exchange(counts[static_cast<size_t>(token)], 0);
    if (count == 0) continue;  // met before in this walk
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= penalties.frequency * static_cast<float>(count) + penalties.presence;
  }
}

}  // namespace optima::sampling
