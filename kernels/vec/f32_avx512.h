// Sixteen floats in a zmm register. The words are explained in f32_avx2.h.
#pragma once

#include <stdint.h>

// gcc 12 takes the deliberately undefined operands inside its own intrinsics for a mistake
// (https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

#include "kernels/half.h"

namespace optima::kernels {
namespace {

struct F32Avx512 {
  using Reg = __m512;
  static constexpr int64_t kWidth = 16;
  static constexpr int kRows = 12;
  static constexpr int kSums = 24;

  static inline Reg zero() { return _mm512_setzero_ps(); }
  static inline Reg set1(float value) { return _mm512_set1_ps(value); }
  static inline Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static inline Reg load(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_epi16(p)); }
  static inline Reg load(const Bf16* p) { return widen(_mm256_loadu_epi16(p)); }
  static inline Reg load(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }
  static inline Reg load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(lanes(n), p); }
  static inline Reg load_n(const uint16_t* p, int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes(n), p));
  }
  static inline Reg load_n(const Bf16* p, int64_t n) {
    return widen(_mm256_maskz_loadu_epi16(lanes(n), p));
  }
  static inline Reg load_n(const int8_t* p, int64_t n) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(lanes(n), p)));
  }
  static inline void store(float* p, Reg v) { _mm512_storeu_ps(p, v); }
  static inline void store_n(float* p, Reg v, int64_t n) { _mm512_mask_storeu_ps(p, lanes(n), v); }

  static inline Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static inline Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static inline Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static inline Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static inline Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static inline Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static inline Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }

  static inline Reg abs(Reg v) { return _mm512_andnot_ps(set1(-0.0f), v); }
  static inline Reg with_sign_of(Reg magnitude, Reg sign) {
    return _mm512_or_ps(magnitude, _mm512_and_ps(set1(-0.0f), sign));
  }
  static inline Reg select_less(Reg a, Reg b, Reg x, Reg y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  static inline Reg keep_range(Reg v, int64_t first, int64_t begin, int64_t end) {
    const __m512i lane =
        _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(static_cast<int>(first)));
    const __mmask16 from =
        _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(static_cast<int>(begin)));
    const __mmask16 inside =
        _mm512_mask_cmplt_epi32_mask(from, lane, _mm512_set1_epi32(static_cast<int>(end)));
    return _mm512_mask_blend_ps(inside, set1(-__builtin_inff()), v);
  }
  static inline Reg pow2(Reg t) {
    const __m512i biased = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(biased, _mm512_set1_epi32(127 << 23)));
  }

  static inline float sum(Reg v) {
    const __m256 x = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
  }
  static inline float largest(Reg v) {
    const __m256 x = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
  }

 private:
  static inline Reg widen(__m256i bf16) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
  }
  static inline __mmask16 lanes(int64_t n) {
    return static_cast<__mmask16>((1u << static_cast<unsigned>(n)) - 1u);
  }
};

}  // namespace
}  // namespace optima::kernels
