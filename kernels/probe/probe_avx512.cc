// 512-bit loads; int8 products by vpdpbusd, four to a 32-bit sum.

#include <immintrin.h>

#include "kernels/probe/probe.h"

namespace optima::kernels::avx512 {
namespace {

constexpr size_t kStepBytes = 512;
constexpr size_t kAheadBytes = 2048;

template <bool kPrefetch>
uint64_t read(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  __m512i sum[8] = {};
  for (size_t at = 0; at < bytes; at += kStepBytes) {
    if constexpr (kPrefetch) {
      for (size_t line = 0; line < kStepBytes; line += 64) {
        _mm_prefetch(from + at + line + kAheadBytes, _MM_HINT_T0);
      }
    }
    for (size_t i = 0; i < kStepBytes / 64; ++i) {
      sum[i] = _mm512_add_epi64(sum[i], _mm512_load_si512(from + at + 64 * i));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm512_add_epi64(sum[0], sum[i]);
  alignas(64) uint64_t lanes[8];
  _mm512_store_si512(lanes, sum[0]);
  uint64_t total = 0;
  for (const uint64_t lane : lanes) total += lane;
  return total;
}

constexpr int kSums = 16;
constexpr int kUnroll = 4;
constexpr int64_t kMacs = int64_t{64} * kSums * kUnroll;

uint32_t multiply(int64_t rounds) {
  __m512i sum[kSums] = {};
  __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(-2);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int u = 0; u < kUnroll; ++u) {
      for (int i = 0; i < kSums; ++i) {
        __asm__ volatile("" : "+v"(a));  // Each product is computed again.
        sum[i] = _mm512_dpbusd_epi32(sum[i], a, b);
      }
    }
  }
  for (int i = 1; i < kSums; ++i) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
  alignas(64) uint32_t lanes[16];
  _mm512_store_si512(lanes, sum[0]);
  return lanes[0];
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

}  // namespace optima::kernels::avx512
