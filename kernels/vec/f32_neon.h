// Eight floats in two registers of 64-bit Arm's Advanced SIMD. The words are explained in
// f32_avx2.h.
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

namespace optima::kernels {
namespace {

struct F32Neon {
  struct Reg {
    float32x4_t low;
    float32x4_t high;
  };
  static constexpr int64_t kWidth = 8;
  // Of 32 registers 24 hold sums: 6 rows of 16 tokens.
  static constexpr int kRows = 6;
  static constexpr int kSums = 12;

  static inline Reg zero() { return set1(0.0f); }
  static inline Reg set1(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
  static inline Reg load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static inline Reg load(const uint16_t* p) {
    const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  static inline Reg load(const Bf16* p) {
    const uint16x8_t halves = vld1q_u16(&p->bits);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(halves, 16))};
  }
  static inline Reg load(const int8_t* p) {
    const int16x8_t words = vmovl_s8(vld1_s8(p));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))};
  }
  template <typename Element>
  static inline Reg load_n(const Element* p, int64_t n) {
    Element copy[kWidth] = {};
    for (int64_t i = 0; i < n; ++i) copy[i] = p[i];
    return load(copy);
  }
  static inline void store(float* p, Reg v) {
    vst1q_f32(p, v.low);
    vst1q_f32(p + 4, v.high);
  }
  static inline void store_n(float* p, Reg v, int64_t n) {
    float copy[kWidth];
    store(copy, v);
    memcpy(p, copy, static_cast<size_t>(n) * sizeof(float));
  }
  static inline void store_half(uint16_t* p, Reg v) {
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(v.low), v.high)));
  }
  static inline void store_half(Bf16* p, Reg v) {
    vst1q_u16(&p->bits, vcombine_u16(rounded(v.low), rounded(v.high)));
  }

  static inline Reg add(Reg a, Reg b) {
    return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
  }
  static inline Reg sub(Reg a, Reg b) {
    return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
  }
  static inline Reg mul(Reg a, Reg b) {
    return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
  }
  static inline Reg div(Reg a, Reg b) {
    return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
  }
  static inline Reg fma(Reg a, Reg b, Reg c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  static inline Reg fma_minus(Reg a, Reg b, Reg c) {
    return fma(a, b, {vnegq_f32(c.low), vnegq_f32(c.high)});
  }
  static inline Reg fma_alternate(Reg a, Reg b, Reg c) {
    const uint32x4_t even = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
    return fma(a, b, {flipped(c.low, even), flipped(c.high, even)});
  }
  // The instructions for the maximum pass every NaN on; these words give b.
  static inline Reg max(Reg a, Reg b) { return {greater(a.low, b.low), greater(a.high, b.high)}; }
  static inline Reg min(Reg a, Reg b) { return {lesser(a.low, b.low), lesser(a.high, b.high)}; }

  static inline Reg abs(Reg v) { return {vabsq_f32(v.low), vabsq_f32(v.high)}; }
  static inline Reg with_sign_of(Reg magnitude, Reg sign) {
    const uint32x4_t bit = vdupq_n_u32(0x80000000u);
    return {vbslq_f32(bit, sign.low, magnitude.low), vbslq_f32(bit, sign.high, magnitude.high)};
  }
  static inline Reg select_less(Reg a, Reg b, Reg x, Reg y) {
    return {vbslq_f32(vcltq_f32(a.low, b.low), x.low, y.low),
            vbslq_f32(vcltq_f32(a.high, b.high), x.high, y.high)};
  }
  static inline Reg keep_range(Reg v, int64_t first, int64_t begin, int64_t end) {
    static constexpr int32_t kLanes[4] = {0, 1, 2, 3};
    const int32x4_t lane = vaddq_s32(vld1q_s32(kLanes), vdupq_n_s32(static_cast<int32_t>(first)));
    return {kept(v.low, lane, begin, end),
            kept(v.high, vaddq_s32(lane, vdupq_n_s32(4)), begin, end)};
  }
  static inline Reg pow2(Reg t) { return {power(t.low), power(t.high)}; }

  static inline Reg even_twice(Reg v) {
    return {vtrn1q_f32(v.low, v.low), vtrn1q_f32(v.high, v.high)};
  }
  static inline Reg odd_twice(Reg v) {
    return {vtrn2q_f32(v.low, v.low), vtrn2q_f32(v.high, v.high)};
  }
  static inline Reg swap_pairs(Reg v) { return {vrev64q_f32(v.low), vrev64q_f32(v.high)}; }
  static inline Reg even_of(Reg a, Reg b) {
    return {vuzp1q_f32(a.low, a.high), vuzp1q_f32(b.low, b.high)};
  }
  static inline Reg odd_of(Reg a, Reg b) {
    return {vuzp2q_f32(a.low, a.high), vuzp2q_f32(b.low, b.high)};
  }
  static inline void transpose(Reg (&rows)[8]) {
    float32x4_t low[8];
    float32x4_t high[8];
    for (int i = 0; i < 8; ++i) {
      low[i] = rows[i].low;
      high[i] = rows[i].high;
    }
    for (int i = 0; i < 8; i += 4) {
      transpose4(low + i);
      transpose4(high + i);
    }
    for (int i = 0; i < 4; ++i) {
      rows[i] = {low[i], low[i + 4]};
      rows[i + 4] = {high[i], high[i + 4]};
    }
  }

  static inline float sum(Reg v) {
    const float32x4_t four = vaddq_f32(v.low, v.high);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static inline float largest(Reg v) {
    float lanes[4];
    vst1q_f32(lanes, greater(v.low, v.high));
    const float even = lanes[0] > lanes[2] ? lanes[0] : lanes[2];
    const float odd = lanes[1] > lanes[3] ? lanes[1] : lanes[3];
    return even > odd ? even : odd;
  }

 private:
  static inline uint16x4_t rounded(float32x4_t v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), up, quiet), 16);
  }
  static inline float32x4_t flipped(float32x4_t v, uint32x4_t signs) {
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(v), signs));
  }
  static inline void transpose4(float32x4_t* rows) {
    const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(rows[0], rows[1]));
    const float64x2_t odd01 = vreinterpretq_f64_f32(vtrn2q_f32(rows[0], rows[1]));
    const float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(rows[2], rows[3]));
    const float64x2_t odd23 = vreinterpretq_f64_f32(vtrn2q_f32(rows[2], rows[3]));
    rows[0] = vreinterpretq_f32_f64(vtrn1q_f64(even01, even23));
    rows[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23));
    rows[2] = vreinterpretq_f32_f64(vtrn2q_f64(even01, even23));
    rows[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23));
  }
  static inline float32x4_t greater(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  }
  static inline float32x4_t lesser(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
  }
  static inline float32x4_t kept(float32x4_t v, int32x4_t lane, int64_t begin, int64_t end) {
    const uint32x4_t from = vcgeq_s32(lane, vdupq_n_s32(static_cast<int32_t>(begin)));
    const uint32x4_t inside = vcltq_s32(lane, vdupq_n_s32(static_cast<int32_t>(end)));
    return vbslq_f32(vandq_u32(from, inside), v, vdupq_n_f32(-__builtin_inff()));
  }
  static inline float32x4_t power(float32x4_t t) {
    const uint32x4_t biased = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vaddq_u32(biased, vdupq_n_u32(127u << 23)));
  }
};

}  // namespace
}  // namespace optima::kernels
