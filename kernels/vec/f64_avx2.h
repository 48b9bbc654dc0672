// Four doubles in a ymm register, loaded from floats and stored as such: what norms add up in.
// f64_neon.h has the same words.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace optima::kernels {
namespace {

struct F64Avx2 {
  using Reg = __m256d;
  static constexpr int64_t kWidth = 4;

  static inline Reg zero() { return _mm256_setzero_pd(); }
  static inline Reg set1(double value) { return _mm256_set1_pd(value); }
  static inline Reg load(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
  static inline void store(float* p, Reg v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }
  static inline Reg add(Reg a, Reg b) { return _mm256_add_pd(a, b); }
  static inline Reg sub(Reg a, Reg b) { return _mm256_sub_pd(a, b); }
  static inline Reg mul(Reg a, Reg b) { return _mm256_mul_pd(a, b); }
  static inline Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_pd(a, b, c); }
  static inline double sum(Reg v) {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
}  // namespace optima::kernels
