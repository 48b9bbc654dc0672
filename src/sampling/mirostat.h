// Mirostat 2: truncation at a surprise that is steered so that the text keeps a wanted mean
// surprise.
//   Basu et al. 2021, "Mirostat: a neural text decoding algorithm that directly controls
//   perplexity"
#pragma once

#include <vector>

#include "sampling/truncation.h"

namespace optima::sampling {

struct Mirostat {
  float target;  // tau, bits
  float rate;    // eta
  float limit;   // mu: the largest surprise that passes now; starts at 2 * tau
};

// Removes candidates whose surprise, -log2 of their probability among those given, is above the
// limit; the most likely one always stays.
void keep_unsurprising(float limit, std::vector<Candidate>& candidates);

// The limit for the next step, after `token` was drawn from `candidates`: limit - rate * (surprise
// of the token among those kept - target).
float next_limit(const Mirostat& mirostat, const std::vector<Candidate>& candidates, int32_t token);

}  // namespace optima::sampling
