// The two instructions of AVX-512 BF16 that the kernels use, in plain C++, as Intel's manual
// (volume 2, VDPBF16PS and VCVTNEPS2BF16) defines them: of each pair the upper product is added
// first, then the lower one, each by a fused multiply-add; rounding is to nearest even, whatever
// MXCSR says; subnormal inputs count as zero and subnormal results become zero. Everything is in an
// unnamed namespace: files compiled for different instruction sets include this.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/matmul/bf16.inl.h"

namespace optima::kernels {
namespace {

struct SimulatedBf16 {
  // Sums: sixteen floats. Pairs: sixteen pairs of bfloat16, the lower one first.
  template <typename Sums, typename Pairs>
  [[gnu::noinline]] static Sums add(const Sums& sums, const Pairs& w, const Pairs& a) {
    static_assert(sizeof(Sums) == 64 && sizeof(Pairs) == 64);
    float sum[16];
    uint16_t x[32];
    uint16_t y[32];
    memcpy(sum, &sums, sizeof sum);
    memcpy(x, &w, sizeof x);
    memcpy(y, &a, sizeof y);
    for (int i = 0; i < 16; ++i) {
      for (int part = 1; part >= 0; --part) {
        sum[i] = normal(__builtin_fmaf(normal(bf16_to_float(x[2 * i + part])),
                                       normal(bf16_to_float(y[2 * i + part])), normal(sum[i])));
      }
    }
    Sums out;
    memcpy(&out, sum, sizeof out);
    return out;
  }

  [[gnu::noinline]] static void round(const float* x, uint8_t* to) {
    for (int i = 0; i < 16; ++i) {
      const uint16_t rounded = float_to_bf16(normal(x[i]));
      memcpy(to + 2 * i, &rounded, sizeof rounded);
    }
  }

 private:
  // Zero of the same sign in place of a subnormal number.
  static float normal(float value) {
    const uint32_t bits = float_bits(value);
    return (bits & 0x7f800000u) == 0 ? float_from_bits(bits & 0x80000000u) : value;
  }
};

// The row for AVX-512 BF16 over vectors V: `Otherwise` multiplies what that row leaves to others.
template <typename V, auto Otherwise>
void run_bf16(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (!bf16_suits(args)) return Otherwise(args, n_begin, n_end);
  word_gemm<Bf16Words<V, SimulatedBf16>>(args, n_begin, n_end);
}

}  // namespace
}  // namespace optima::kernels
