// How many prompt tokens may join a batch beside tokens that others wait for, so that a long prompt
// does not hold up running answers: a controller over measured times. Chunked prefill beside
// decodes is Sarathi's (Agrawal et al. 2023, arXiv:2308.16369); the size follows the clock, because
// what a token costs depends on the model, the machine and the depth.
#pragma once

#include <cstdint>

namespace optima::scheduler {

struct PaceLimits {
  int64_t tokens_max = 0;  // prompt tokens of a batch when nobody waits
  int64_t tokens_min = 0;  // however slow it is, so that prompts end
  double stretch = 0;      // a batch with prompt tokens may take so many times one without
};

class Pace {
 public:
  explicit Pace(const PaceLimits& limits) : limits_(limits), tokens_(limits.tokens_min) {}

  // Prompt tokens of the next batch, which also has `decodes` single tokens; 0 now and then, to
  // measure what a batch takes without.
  int64_t prompt_tokens(int64_t decodes);
  // What a batch took.
  void observe(int64_t prompt_tokens, int64_t decodes, int64_t nanoseconds);

 private:
  PaceLimits limits_;
  int64_t tokens_;        // the present size
  double decode_ns_ = 0;  // of a batch of single tokens; 0 = not measured
  int64_t decodes_ = 0;   // single tokens of that batch
  int64_t since_measured_ = 0;
};

}  // namespace optima::scheduler
