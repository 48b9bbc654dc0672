// int8 products by vpdpbusd in its VEX encoding, four to a 32-bit sum.

#include <immintrin.h>

#include "kernels/probe/probe.h"

namespace optima::kernels::avxvnni {
namespace {

constexpr int kSums = 12;
constexpr int kUnroll = 4;
constexpr int64_t kMacs = int64_t{32} * kSums * kUnroll;

uint32_t multiply(int64_t rounds) {
  __m256i sum[kSums] = {};
  __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-2);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int u = 0; u < kUnroll; ++u) {
      for (int i = 0; i < kSums; ++i) {
        __asm__ volatile("" : "+x"(a));  // Each product is computed again.
        sum[i] = _mm256_dpbusd_avx_epi32(sum[i], a, b);
      }
    }
  }
  for (int i = 1; i < kSums; ++i) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
  return static_cast<uint32_t>(_mm256_extract_epi32(sum[0], 0));
}

}  // namespace

uint32_t multiply_int8(int64_t rounds) {
  return multiply(rounds);
}

int64_t int8_macs_per_round() {
  return kMacs;
}

}  // namespace optima::kernels::avxvnni
