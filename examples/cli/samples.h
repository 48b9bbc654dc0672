// Several answers to one prompt, which is computed once.
#pragma once

#include "generation.h"

namespace cli {

struct Sample {
  Result result;
  double mean_logprob = 0;  // of its tokens; -infinity when there are none
};

// `count` answers, each with a seed of its own, made side by side; the most probable one first.
std::vector<Sample> generate_samples(optima_session* session, const std::vector<int32_t>& prompt,
                                     const GenerationArgs& args, int32_t count);

}  // namespace cli
