// Eight floats in a ymm register: the words that the portable algorithms (*.inl.h) are written in.
// Every backend of this folder named f32_* offers the same ones; their meaning is stated here.
//
// A kernel file includes one of them, so everything sits in an unnamed namespace: no copy of a
// function compiled for this instruction set can be taken for another file's.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "kernels/half.h"

namespace optima::kernels {
namespace {

struct F32Avx2 {
  using Reg = __m256;
  static constexpr int64_t kWidth = 8;
  // Query rows that one pass of a dot-product tile holds in registers.
  static constexpr int kRows = 6;
  // Vectors of running sums that the registers hold beside the operands.
  static constexpr int kSums = 12;

  static inline Reg zero() { return _mm256_setzero_ps(); }
  static inline Reg set1(float value) { return _mm256_set1_ps(value); }
  static inline Reg load(const float* p) { return _mm256_loadu_ps(p); }
  // Sixteen-bit sources are f16 and are widened.
  static inline Reg load(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static inline Reg load(const Bf16* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static inline Reg load(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
  // The first n lanes, 0 < n < kWidth; the others are zero and their memory is not touched.
  static inline Reg load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, lanes(n)); }
  template <typename Element>
  static inline Reg load_n(const Element* p, int64_t n) {
    Element copy[8] = {};
    for (int64_t i = 0; i < n; ++i) copy[i] = p[i];
    return load(copy);
  }
  static inline void store(float* p, Reg v) { _mm256_storeu_ps(p, v); }
  static inline void store_n(float* p, Reg v, int64_t n) { _mm256_maskstore_ps(p, lanes(n), v); }
  // Nearest even; finite values must be within the range of the 16 bits already. NaN stays NaN.
  static inline void store_half(uint16_t* p, Reg v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static inline void store_half(Bf16* p, Reg v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(rounded, quiet, nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }

  static inline Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static inline Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static inline Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static inline Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  // a * b + c; in one rounding where the machine can.
  static inline Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static inline Reg fma_minus(Reg a, Reg b, Reg c) {
    return _mm256_fmsub_ps(a, b, c);
  }  // a * b - c
  // a * b - c in even lanes, a * b + c in odd ones.
  static inline Reg fma_alternate(Reg a, Reg b, Reg c) { return _mm256_fmaddsub_ps(a, b, c); }
  // b where either is NaN.
  static inline Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static inline Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }

  static inline Reg abs(Reg v) { return _mm256_andnot_ps(set1(-0.0f), v); }
  static inline Reg with_sign_of(Reg magnitude, Reg sign) {
    return _mm256_or_ps(magnitude, _mm256_and_ps(set1(-0.0f), sign));
  }
  // a < b ? x : y; y where either is NaN.
  static inline Reg select_less(Reg a, Reg b, Reg x, Reg y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
  }
  // Lane i keeps its value where begin <= first + i < end, and is -inf elsewhere.
  static inline Reg keep_range(Reg v, int64_t first, int64_t begin, int64_t end) {
    const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                          _mm256_set1_epi32(static_cast<int>(first)));
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(begin)), lane);
    const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(end)), lane);
    return _mm256_blendv_ps(set1(-__builtin_inff()), v,
                            _mm256_castsi256_ps(_mm256_andnot_si256(below, inside)));
  }
  // 2^n, where t = n + 1.5 * 2^23 for an integer -127 <= n <= 128; -127 gives 0, 128 infinity.
  static inline Reg pow2(Reg t) {
    const __m256i biased = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(biased, _mm256_set1_epi32(127 << 23)));
  }

  // Every even (odd) lane, and the same in the lane after (before) it.
  static inline Reg even_twice(Reg v) { return _mm256_moveldup_ps(v); }
  static inline Reg odd_twice(Reg v) { return _mm256_movehdup_ps(v); }
  static inline Reg swap_pairs(Reg v) { return _mm256_permute_ps(v, 0xb1); }
  // The even (odd) lanes of a, then those of b.
  static inline Reg even_of(Reg a, Reg b) { return in_order(_mm256_shuffle_ps(a, b, 0x88)); }
  static inline Reg odd_of(Reg a, Reg b) { return in_order(_mm256_shuffle_ps(a, b, 0xdd)); }
  // rows[i] lane j -> rows[j] lane i.
  static inline void transpose(Reg (&rows)[8]) {
    Reg pairs[8];
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    Reg quads[8];
    for (int i = 0; i < 8; i += 4) {
      quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
      rows[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
    }
  }

  static inline float sum(Reg v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
  }
  static inline float largest(Reg v) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }

 private:
  // Lanes 0 1 4 5 2 3 6 7 of a shuffle within 128-bit halves, put in order.
  static inline Reg in_order(Reg v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
  }
  static inline __m256i lanes(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace
}  // namespace optima::kernels
