// int8 products by sdot, four to a 32-bit sum.

#include <arm_neon.h>

#include "kernels/probe/probe.h"

namespace optima::kernels::neon_dot {
namespace {

constexpr int kSums = 16;
constexpr int kUnroll = 4;
constexpr int64_t kMacs = int64_t{16} * kSums * kUnroll;

uint32_t multiply(int64_t rounds) {
  int32x4_t sum[kSums] = {};
  int8x16_t a = vdupq_n_s8(3);
  const int8x16_t b = vdupq_n_s8(-2);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int u = 0; u < kUnroll; ++u) {
      for (int i = 0; i < kSums; ++i) {
        __asm__ volatile("" : "+w"(a));  // Each product is computed again.
        sum[i] = vdotq_s32(sum[i], a, b);
      }
    }
  }
  for (int i = 1; i < kSums; ++i) sum[0] = vaddq_s32(sum[0], sum[i]);
  return static_cast<uint32_t>(vgetq_lane_s32(sum[0], 0));
}

}  // namespace

uint32_t multiply_int8(int64_t rounds) {
  return multiply(rounds);
}

int64_t int8_macs_per_round() {
  return kMacs;
}

}  // namespace optima::kernels::neon_dot
