// 128-bit loads; int8 products by smull and smull2, widened twice: what a CPU without dot products
// has to do.

#include <arm_neon.h>

#include "kernels/probe/probe.h"

namespace optima::kernels::neon {
namespace {

constexpr size_t kStepBytes = 512;
constexpr size_t kAheadBytes = 2048;

template <bool kPrefetch>
uint64_t read(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  uint64x2_t sum[8] = {};
  for (size_t at = 0; at < bytes; at += kStepBytes) {
    if constexpr (kPrefetch) {
      for (size_t line = 0; line < kStepBytes; line += 64) {
        __builtin_prefetch(from + at + line + kAheadBytes);
      }
    }
    for (size_t i = 0; i < kStepBytes / 16; ++i) {
      const auto* word = reinterpret_cast<const uint64_t*>(from + at + 16 * i);
      sum[i % 8] = vaddq_u64(sum[i % 8], vld1q_u64(word));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = vaddq_u64(sum[0], sum[i]);
  return vaddvq_u64(sum[0]);
}

constexpr int kSums = 12;
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
        const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
        sum[i] = vpadalq_s16(sum[i], vmlal_high_s8(low, a, b));
      }
    }
  }
  for (int i = 1; i < kSums; ++i) sum[0] = vaddq_s32(sum[0], sum[i]);
  return static_cast<uint32_t>(vgetq_lane_s32(sum[0], 0));
}

}  // namespace

uint64_t read_plain(const void* data, size_t bytes) {
  return read<false>(data, bytes);
}

uint64_t read_prefetched(const void* data, size_t bytes) {
  return read<true>(data, bytes);
}

uint32_t multiply_int8(int64_t rounds) {
  return multiply(rounds);
}

int64_t int8_macs_per_round() {
  return kMacs;
}

}  // namespace optima::kernels::neon
