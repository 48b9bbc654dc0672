// "Don't repeat yourself": a token that would go on repeating what has been said before is
// penalised, exponentially in the length of the repetition.
//   P. E. Weidmann 2024, "DRY: a modern repetition penalty that reliably prevents looping",
//   text-generation-webui, pull request 5677
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace optima::sampling {

struct Dry {
  float multiplier = 0;  // 0 = off
  float base = 1.75f;
  int32_t allowed = 2;                     // repetitions shorter than this are free
  std::span<const int32_t> breakers = {};  // sorted; no repetition runs across one of them
};

// For each token that followed an earlier occurrence of the last n tokens, with the largest such n:
// when n >= allowed, logit -= multiplier * base ^ (n - allowed), at most 1e30. A breaker ends the
// repetition, and is not penalised itself. Linear in `recent`. `scratch` grows on first use.
void apply_dry(const Dry& dry, std::span<const int32_t> recent, std::vector<int32_t>& scratch,
               std::span<float> logits);

}  // namespace optima::sampling
