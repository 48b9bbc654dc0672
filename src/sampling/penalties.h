// What makes tokens more or less likely before any is dropped: bias by id, and penalties for tokens
// that occurred.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace optima::sampling {

struct Penalties {
  float repetition = 0;  // 0 or 1 = off
  float presence = 0;
  float frequency = 0;
  bool any() const {
    return (repetition != 0 && repetition != 1) || presence != 0 || frequency != 0;
  }
};

// logit += bias. The ids are within the vocabulary; an id named twice gets both.
void apply_bias(std::span<const std::pair<int32_t, float>> bias, std::span<float> logits);

// For each distinct token of `recent`, in this order:
//   logit = logit > 0 ? logit / repetition : logit * repetition        Keskar et al. 2019 (CTRL)
//   logit -= frequency * count + presence                              OpenAI's definition
// Ids outside the vocabulary cannot be predicted and are passed over. `counts` is all zero before
// and after (it grows to the vocabulary on first use).
void apply_penalties(const Penalties& penalties, std::span<const int32_t> recent,
                     std::vector<int32_t>& counts, std::span<float> logits);

}  // namespace optima::sampling
