// Four doubles in two registers of 64-bit Arm. The words are those of f64_avx2.h.
#pragma once

#include <arm_neon.h>
#include <stdint.h>

namespace optima::kernels {
namespace {

struct F64Neon {
  struct Reg {
    float64x2_t low;
    float64x2_t high;
  };
  static constexpr int64_t kWidth = 4;

  static inline Reg zero() { return set1(0.0); }
  static inline Reg set1(double value) { return {vdupq_n_f64(value), vdupq_n_f64(value)}; }
  static inline Reg load(const float* p) {
    const float32x4_t four = vld1q_f32(p);
    return {vcvt_f64_f32(vget_low_f32(four)), vcvt_high_f64_f32(four)};
  }
  static inline void store(float* p, Reg v) {
    vst1q_f32(p, vcvt_high_f32_f64(vcvt_f32_f64(v.low), v.high));
  }
  static inline Reg add(Reg a, Reg b) {
    return {vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high)};
  }
  static inline Reg sub(Reg a, Reg b) {
    return {vsubq_f64(a.low, b.low), vsubq_f64(a.high, b.high)};
  }
  static inline Reg mul(Reg a, Reg b) {
    return {vmulq_f64(a.low, b.low), vmulq_f64(a.high, b.high)};
  }
  static inline Reg fma(Reg a, Reg b, Reg c) {
    return {vfmaq_f64(c.low, a.low, b.low), vfmaq_f64(c.high, a.high, b.high)};
  }
  static inline double sum(Reg v) { return vaddvq_f64(vaddq_f64(v.low, v.high)); }
};

}  // namespace
}  // namespace optima::kernels
