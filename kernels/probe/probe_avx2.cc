// 256-bit loads; int8 products by vpmaddubsw, summed in 16 bits: without widening, which real
// kernels can put off as well, so this is an upper bound.

#include <immintrin.h>

#include "kernels/probe/probe.h"

namespace optima::kernels::avx2 {
namespace {

constexpr size_t kStepBytes = 512;
constexpr size_t kAheadBytes = 2048;

template <bool kPrefetch>
uint64_t read(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  __m256i sum[8] = {};
  for (size_t at = 0; at < bytes; at += kStepBytes) {
    if constexpr (kPrefetch) {
      for (size_t line = 0; line < kStepBytes; line += 64) {
        _mm_prefetch(from + at + line + kAheadBytes, _MM_HINT_T0);
      }
    }
    for (size_t i = 0; i < kStepBytes / 32; ++i) {
      const auto* word = reinterpret_cast<const __m256i*>(from + at + 32 * i);
      sum[i % 8] = _mm256_add_epi64(sum[i % 8], _mm256_load_si256(word));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_add_epi64(sum[0], sum[i]);
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum[0]);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

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
        sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(a, b));
      }
    }
  }
  for (int i = 1; i < kSums; ++i) sum[0] = _mm256_add_epi16(sum[0], sum[i]);
  return static_cast<uint32_t>(_mm256_extract_epi16(sum[0], 0));
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

}  // namespace optima::kernels::avx2
