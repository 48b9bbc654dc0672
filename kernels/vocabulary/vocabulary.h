// Passes over the logits of a whole vocabulary, up to a quarter of a million of them per token:
// what choosing the next one needs. Their results are by blocks of kVocabularyBlock logits, so that
// who looks for a few of them need not look at the others. The last block may be shorter.
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

inline constexpr int64_t kVocabularyBlock = 256;

struct VocabularyKernel {
  // maxima[b] is the largest logit of block b, NaN passed over; -inf when there is none. Returns
  // how many are NaN.
  int64_t (*maxima)(const float* x, int64_t count, float* maxima);
  // out = exp((x - highest) / temperature), at most 2e-7 of it off; 0 below exp(-87.3), and for
  // NaN. x <= highest, finite; temperature > 0. out may equal x.
  void (*weights)(const float* x, int64_t count, float highest, float temperature, float* out);
  // masses[b] is the sum of the weights of block b, in double.
  void (*masses)(const float* x, int64_t count, float highest, float temperature, double* masses);
};

Variants<VocabularyKernel> vocabulary_variants();
extern const VocabularyKernel kVocabularyReference;

}  // namespace optima::kernels
