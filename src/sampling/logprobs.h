// Log-probabilities when the normaliser is already known; the public forms are in sampler.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampler.h"

namespace optima::sampling {

// logit - normaliser; -inf where that is not a number.
float logprob_from(float logit, double normaliser);

// Best first, equal ones by token; fewer than `count` when fewer are possible at all.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, const Survey& survey,
                                       int32_t count, double normaliser);

}  // namespace optima::sampling
