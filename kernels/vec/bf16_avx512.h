// The instructions of AVX-512 BF16 under the names that kernels use.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace optima::kernels {
namespace {

struct EvexBf16 {
  // Sixteen sums, each plus the two products of its pair.
  static __m512 add(__m512 sum, __m512i w, __m512i a) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(a));
  }
  // Sixteen floats at x to as many bfloat16.
  static void round(const float* x, uint8_t* to) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x));
    memcpy(to, &rounded, sizeof rounded);
  }
};

// In place of dot products of bytes, for vectors (avx512.h) that meet bfloat16 alone.
struct NoDots {};

// Rows of tiles.
struct TileRounding {
  // Two times sixteen floats, rounded to bfloat16: low[0..15], high[0..15].
  static void round(const __m512& low, const __m512& high, uint8_t* to) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
    memcpy(to, &rounded, sizeof rounded);
  }
  // The same as pairs: first[0], second[0], first[1], ...
  static void round_pairs(const __m512& first, const __m512& second, uint8_t* to) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(second, first);
    __m512i halves;
    memcpy(&halves, &rounded, sizeof halves);
    const __m512i first_lanes = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
    const __m512i second_lanes = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(halves, 1));
    const __m512i pairs = _mm512_or_si512(first_lanes, _mm512_slli_epi32(second_lanes, 16));
    memcpy(to, &pairs, sizeof pairs);
  }
};

}  // namespace
}  // namespace optima::kernels
