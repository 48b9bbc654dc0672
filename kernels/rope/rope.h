// Rotary position embedding (Su et al. 2021, arXiv:2104.09864), in place, on heads that lie side
// by side.
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

enum class RopePairs : int32_t {
  adjacent = 0,  // pairs (2i, 2i+1): Llama GGUF files
  halves = 1,    // pairs (i, i + rotary_dim/2): NeoX style, Gemma, Qwen
};

struct RopeArgs {
  float* x;  // [tokens, heads, head_dim], row stride x_stride floats
  int64_t x_stride;
  int64_t heads;
  int64_t head_dim;
  int64_t rotary_dim;    // first rotary_dim values of a head are rotated
  const float* cos_sin;  // [tokens, rotary_dim]: cos of pair i at 2i, sin at 2i+1, for each token
  RopePairs pairs;
};

using RopeFn = void (*)(const RopeArgs& args, int64_t token_begin, int64_t token_end);
Variants<RopeFn> rope_variants();
extern const RopeFn kRopeReference;

// Fills cos_sin rows for the positions given (shared by all layers of one rope kind, once a batch).
// inverse_frequency: [rotary_dim / 2]; angles are computed in double, then rounded to fp32.
void rope_table(const int32_t* positions, int64_t tokens, const double* inverse_frequency,
                int64_t rotary_dim, double magnitude, float* cos_sin);

}  // namespace optima::kernels
