//   Tang et al. 2024, "Top-nσ: eliminating noise in logit space for robust token sampling of LLM"
#pragma once

#include <span>

namespace optima::sampling {

// The logit below which a token is noise: highest - n * (standard deviation of the logits). Logits
// of -inf are of tokens that cannot come and do not count. `n` is above 0.
float top_n_sigma_floor(float n, std::span<const float> logits, float highest);

}  // namespace optima::sampling
