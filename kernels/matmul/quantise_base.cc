// Quantises activations in plain C++ for any CPU.

#include <string.h>

#include "kernels/half.h"
#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

// Below this largest magnitude a block counts as zero: 127 / amax must stay finite.
constexpr float kTiny = 1e-30f;

// Largest magnitude; infinity or NaN where one is present (their bits compare above all numbers).
float largest_magnitude(const float* x) {
  uint32_t largest = 0;
  for (int i = 0; i < kActivationBlock; ++i) {
    const uint32_t bits = float_bits(x[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return float_from_bits(largest);
}

// Rounds |x| < 2^22 to the nearest integer, ties to even, with no call and no mode change.
float round_even(float x) {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;
}

void quantise_block(const float* x, int64_t block, const QuantisedRows& out) {
  const float largest = largest_magnitude(x);
  const bool finite = float_bits(largest) < 0x7f800000u;
  const float inverse = finite && largest > kTiny ? 127.0f / largest : 0.0f;
  const float nan = float_from_bits(0x7fc00000u);
  out.scale[block] = !finite ? nan : inverse > 0.0f ? largest / 127.0f : 0.0f;
  int8_t* q = out.q + block * kActivationBlock;
  for (int half = 0; half < 2; ++half) {
    float sum = 0.0f;
    int pair[2] = {0, 0};
    for (int i = 16 * half; i < 16 * half + 16; ++i) {
      const int value = finite ? static_cast<int>(round_even(x[i] * inverse)) : 0;
      q[i] = static_cast<int8_t>(value);
      pair[i % 4 / 2] += value;
      sum += x[i];
    }
    out.sum_x16[2 * block + half] = sum;
    out.pairs16[4 * block + 2 * half] = static_cast<int16_t>(pair[0]);
    out.pairs16[4 * block + 2 * half + 1] = static_cast<int16_t>(pair[1]);
  }
  out.sum_x[block] = out.sum_x16[2 * block] + out.sum_x16[2 * block + 1];
  for (int i = 0; i < 2; ++i) {
    out.pairs[2 * block + i] =
        static_cast<int16_t>(out.pairs16[4 * block + i] + out.pairs16[4 * block + 2 + i]);
  }
}

}  // namespace

namespace baseline {

void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out) {
  const int64_t blocks = out.k_padded / kActivationBlock;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* values = x + row * k;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t rest = k - b * kActivationBlock;
      if (rest >= kActivationBlock) {
        quantise_block(values + b * kActivationBlock, row * blocks + b, out);
        continue;
      }
      float tail[kActivationBlock] = {};
      memcpy(tail, values + b * kActivationBlock, static_cast<size_t>(rest) * sizeof(float));
      quantise_block(tail, row * blocks + b, out);
    }
  }
}

}  // namespace baseline
}  // namespace optima::kernels
