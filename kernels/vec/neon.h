// The vector operations of the matrix kernels on 64-bit Arm: those of avx512.h, whose names are
// explained there and in avx2.h, over pairs (32 bytes) and fours (64 bytes) of registers.
//
// Dot multiplies int8 by int8 and adds the products in groups of four to int32: a struct with
// `int32x4_t add(int32x4_t sum, int8x16_t w, int8x16_t a)`. Codes below 128 are the same number
// signed and unsigned, so kSignedCodes asks for 8-bit codes as int8 instead of offset by 128.
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

namespace optima::kernels {
namespace {

// Without an instruction for dot products: 16-bit products are added in pairs, which fit even of
// -128 * 127 twice, and those widened.
struct WideningDot {
  static int32x4_t add(int32x4_t sum, int8x16_t w, int8x16_t a) {
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(a));
    return vpadalq_s16(sum, vpaddq_s16(low, vmull_high_s8(w, a)));
  }
};

template <typename Dot>
struct NeonVector {
  struct Bytes {
    uint8x16_t low;
    uint8x16_t high;
  };
  struct Floats {
    float32x4_t low;
    float32x4_t high;
  };
  // See avx512.h.
  static constexpr bool kSignedCodes = true;
  static constexpr bool kSquares = false;
  static constexpr int kTileColumns = 4;
  static constexpr int kTilePanels = 1;
  static constexpr int kPanelColumns = 4;
  static constexpr int kFloatColumns = 6;  // of matmul/words.inl.h: 24 of 32 registers hold sums
  static constexpr int kFloatPanels = 1;

  // Bytes.
  static Bytes load(const void* p) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
  }
  static void store(void* p, Bytes a) {
    auto* bytes = static_cast<uint8_t*>(p);
    vst1q_u8(bytes, a.low);
    vst1q_u8(bytes + 16, a.high);
  }
  static Bytes fill(int8_t value) {
    const uint8x16_t bytes = vdupq_n_u8(static_cast<uint8_t>(value));
    return {bytes, bytes};
  }
  static Bytes load_twice(const void* p) { return load_pair(p, p); }
  static Bytes load_pair(const void* p, const void* q) {
    return {vld1q_u8(static_cast<const uint8_t*>(p)), vld1q_u8(static_cast<const uint8_t*>(q))};
  }
  static Bytes load_nibbles(const void* p) {
    const uint8x16_t both = vld1q_u8(static_cast<const uint8_t*>(p));
    return {vandq_u8(both, vdupq_n_u8(15)), vshrq_n_u8(both, 4)};
  }
  static void load_nibble_pair(const void* p, const void* q, Bytes& low, Bytes& high) {
    const Bytes both = load_pair(p, q);
    low = bit_and(both, fill(15));
    high = {vshrq_n_u8(both.low, 4), vshrq_n_u8(both.high, 4)};
  }
  static Bytes bit_and(Bytes a, Bytes b) {
    return {vandq_u8(a.low, b.low), vandq_u8(a.high, b.high)};
  }
  static Bytes bit_or(Bytes a, Bytes b) {
    return {vorrq_u8(a.low, b.low), vorrq_u8(a.high, b.high)};
  }
  static Bytes bit_xor(Bytes a, Bytes b) {
    return {veorq_u8(a.low, b.low), veorq_u8(a.high, b.high)};
  }
  template <int N>
  static Bytes shift(Bytes a) {
    return {shifted<N>(a.low), shifted<N>(a.high)};
  }
  static Bytes lookup(Bytes table, Bytes index) {
    return {vqtbl1q_u8(table.low, index.low), vqtbl1q_u8(table.high, index.high)};
  }
  static Bytes expand_bits(uint32_t bits, int8_t value) {
    const uint8x16_t words = vreinterpretq_u8_u32(vdupq_n_u32(bits));
    return {expand(vqtbl1q_u8(words, byte_pair(0)), value),
            expand(vqtbl1q_u8(words, byte_pair(2)), value)};
  }
  static void expand_bit_pair(const void* p, const void* q, int8_t value, Bytes& low, Bytes& high) {
    const Bytes first = expand_bits(word32(p), value);
    const Bytes second = expand_bits(word32(q), value);
    low = {first.low, second.low};
    high = {first.high, second.high};
  }
  static void transpose(const Bytes row[8], Bytes out[8]) {
    for (int half = 0; half < 2; ++half) {
      const Bytes* r = row + 4 * half;
      uint32x4_t columns[8];
      transpose4(r[0].low, r[1].low, r[2].low, r[3].low, columns);
      transpose4(r[0].high, r[1].high, r[2].high, r[3].high, columns + 4);
      for (int j = 0; j < 8; ++j) {
        (half == 0 ? out[j].low : out[j].high) = vreinterpretq_u8_u32(columns[j]);
      }
    }
  }

  // Integer dot products.
  static Floats dot(Bytes u, Bytes a) { return to_float(dots(u.low, a.low), dots(u.high, a.high)); }
  static Floats dot_signed(Bytes w, Bytes a) { return dot(w, a); }
  static Floats dot_pair(Bytes u0, Bytes a0, Bytes u1, Bytes a1) {
    return to_float(add_dot(dots(u0.low, a0.low), u1.low, a1.low),
                    add_dot(dots(u0.high, a0.high), u1.high, a1.high));
  }
  static Floats dot_signed_pair(Bytes w0, Bytes a0, Bytes w1, Bytes a1) {
    return dot_pair(w0, a0, w1, a1);
  }
  // Every group of four has one scale, as spread_words() makes them.
  static Floats dot_scaled(Bytes u, Bytes a, Bytes scale) {
    return to_float(vmulq_s32(dots(u.low, a.low), upper_words(scale.low)),
                    vmulq_s32(dots(u.high, a.high), upper_words(scale.high)));
  }
  static Floats dot_shorts(Bytes a, Bytes b) {
    return to_float(dot_words(a.low, b.low), dot_words(a.high, b.high));
  }
  template <int I>
  static Bytes spread_words(Bytes words) {
    constexpr int kFirst = 2 * (I % 4);
    const int16x8_t in = vreinterpretq_s16_u8(words.low);
    return {vreinterpretq_u8_s16(vdupq_laneq_s16(in, kFirst)),
            vreinterpretq_u8_s16(vdupq_laneq_s16(in, kFirst + 1))};
  }
  template <int I>
  static Floats spread(Floats a) {
    return {vdupq_laneq_f32(a.low, I), vdupq_laneq_f32(a.high, I)};
  }

  // Floats.
  static Bytes float_bits(Floats a) {
    return {vreinterpretq_u8_f32(a.low), vreinterpretq_u8_f32(a.high)};
  }
  static Floats zero() { return set(0.0f); }
  static Floats set(float a) { return {vdupq_n_f32(a), vdupq_n_f32(a)}; }
  static Floats load_floats(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  template <int N>
  static Floats load_floats(const float* p) {
    if constexpr (N == 8) return load_floats(p);
    if constexpr (N == 4) return {vld1q_f32(p), vdupq_n_f32(0.0f)};
    float copy[8] = {};
    for (int i = 0; i < N; ++i) copy[i] = p[i];
    return load_floats(copy);
  }
  static void store_floats(float* p, Floats a) {
    vst1q_f32(p, a.low);
    vst1q_f32(p + 4, a.high);
  }
  static Floats load_broadcast(const float* p) { return {vld1q_dup_f32(p), vld1q_dup_f32(p)}; }
  static Floats add(Floats a, Floats b) {
    return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
  }
  static Floats sub(Floats a, Floats b) {
    return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
  }
  static Floats mul(Floats a, Floats b) {
    return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  static float sum(Floats a) {
    const float32x4_t four = vaddq_f32(a.low, a.high);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static Floats from_bytes(uint64_t bytes) {
    const uint16x8_t words = vmovl_u8(vcreate_u8(bytes));
    return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(words))), vcvtq_f32_u32(vmovl_high_u16(words))};
  }
  static Bytes words_twice(uint64_t bytes) { return words(bytes, bytes); }
  static Bytes words(uint64_t low, uint64_t high) {
    return {vreinterpretq_u8_s16(vmovl_s8(vcreate_s8(low))),
            vreinterpretq_u8_s16(vmovl_s8(vcreate_s8(high)))};
  }
  static float half(const void* p) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(word16(p)))), 0);
  }
  static Floats halves(const void* p) {
    return widened(vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(p))));
  }
  static Floats bfloats(const void* p) {
    const uint16x8_t bits = vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(p)));
    return {vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(bits)), 16)),
            vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(bits), 16))};
  }
  template <int N>
  static Floats gather_halves(const uint8_t* p, int stride) {
    return widened(gather<0, N>(vdupq_n_u16(0), p, stride));
  }
  template <int N>
  static void gather_half_pairs(const uint8_t* p, int stride, Floats& first, Floats& second) {
    first = gather_halves<N>(p, stride);
    second = gather_halves<N>(p + 2, stride);
  }
  template <int N>
  static Floats gather_exponents(const uint8_t* p, int stride) {
    uint64_t bytes = 0;
    for (int i = 0; i < N; ++i) bytes |= static_cast<uint64_t>(p[i * stride]) << (8 * i);
    const uint16x8_t e = vmovl_u8(vqsub_u8(vcreate_u8(bytes), vdup_n_u8(1)));
    return {vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(e)), 23)),
            vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(e), 23))};
  }

  // Wide vectors: sixteen lanes of 32 bits.
  struct Wide {
    uint8x16_t part[4];
  };
  struct WideFloats {
    float32x4_t part[4];
  };
  static Wide wide_load(const void* p) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    return {{vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)}};
  }
  static Wide wide_broadcast(const void* p) {
    return four(vreinterpretq_u8_u32(vdupq_n_u32(word32(p))));
  }
  static Wide wide_words(int16_t value) { return four(vreinterpretq_u8_s16(vdupq_n_s16(value))); }
  static Wide wide_fill(int8_t value) { return four(vdupq_n_u8(static_cast<uint8_t>(value))); }
  static Wide wide_add_dot(const Wide& sum, const Wide& u, const Wide& a) {
    return each(sum, [&](uint8x16_t s, int i) {
      return vreinterpretq_u8_s32(add_dot(vreinterpretq_s32_u8(s), u.part[i], a.part[i]));
    });
  }
  static Wide wide_and(const Wide& a, const Wide& b) {
    return each(a, [&](uint8x16_t x, int i) { return vandq_u8(x, b.part[i]); });
  }
  static Wide wide_or(const Wide& a, const Wide& b) {
    return each(a, [&](uint8x16_t x, int i) { return vorrq_u8(x, b.part[i]); });
  }
  static Wide wide_xor(const Wide& a, const Wide& b) {
    return each(a, [&](uint8x16_t x, int i) { return veorq_u8(x, b.part[i]); });
  }
  template <int N>
  static Wide wide_shift(const Wide& a) {
    return each(a, [](uint8x16_t x, int) { return shifted<N>(x); });
  }
  static Wide wide_dot_words(const Wide& a, const Wide& b) {
    return each(a,
                [&](uint8x16_t x, int i) { return vreinterpretq_u8_s32(dot_words(x, b.part[i])); });
  }
  static WideFloats wide_to_float(const Wide& a) {
    return floats([&](int i) { return vcvtq_f32_s32(vreinterpretq_s32_u8(a.part[i])); });
  }
  static WideFloats wide_zero() { return wide_set(0.0f); }
  static WideFloats wide_load_floats(const float* p) {
    return floats([&](int i) { return vld1q_f32(p + 4 * i); });
  }
  static WideFloats wide_halves(const void* p) {
    const Floats low = halves(p);
    const Floats high = halves(static_cast<const uint8_t*>(p) + 16);
    return {{low.low, low.high, high.low, high.high}};
  }
  static WideFloats wide_from_bytes(const void* p) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const uint8_t*>(p));
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t high = vmovl_high_u8(bytes);
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
             vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))}};
  }
  static WideFloats wide_from_int8(const void* p) {
    const int8x16_t bytes = vld1q_s8(static_cast<const int8_t*>(p));
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t high = vmovl_high_s8(bytes);
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
             vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
  }
  static WideFloats wide_set(float a) {
    return floats([&](int) { return vdupq_n_f32(a); });
  }
  static WideFloats wide_mul(const WideFloats& a, const WideFloats& b) {
    return floats([&](int i) { return vmulq_f32(a.part[i], b.part[i]); });
  }
  static WideFloats wide_sub(const WideFloats& a, const WideFloats& b) {
    return floats([&](int i) { return vsubq_f32(a.part[i], b.part[i]); });
  }
  static WideFloats wide_fma(const WideFloats& a, const WideFloats& b, const WideFloats& c) {
    return floats([&](int i) { return vfmaq_f32(c.part[i], a.part[i], b.part[i]); });
  }
  static WideFloats wide_add_first(const WideFloats& a, const float* p, int count) {
    float copy[16] = {};
    memcpy(copy, p, static_cast<size_t>(count) * sizeof(float));
    return floats([&](int i) { return vaddq_f32(a.part[i], vld1q_f32(copy + 4 * i)); });
  }
  static void wide_store_first(float* p, const WideFloats& a, int count) {
    float copy[16];
    for (int i = 0; i < 4; ++i) vst1q_f32(copy + 4 * i, a.part[i]);
    memcpy(p, copy, static_cast<size_t>(count) * sizeof(float));
  }

 protected:
  static uint32_t word32(const void* p) {
    uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
  }
  static uint16_t word16(const void* p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
  }
  static int32x4_t add_dot(int32x4_t sum, uint8x16_t w, uint8x16_t a) {
    return Dot::add(sum, vreinterpretq_s8_u8(w), vreinterpretq_s8_u8(a));
  }
  static int32x4_t dots(uint8x16_t w, uint8x16_t a) { return add_dot(vdupq_n_s32(0), w, a); }
  static Floats to_float(int32x4_t low, int32x4_t high) {
    return {vcvtq_f32_s32(low), vcvtq_f32_s32(high)};
  }
  static Floats widened(uint16x8_t halves) {
    const float16x8_t h = vreinterpretq_f16_u16(halves);
    return {vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
  }
  template <int N>
  static uint8x16_t shifted(uint8x16_t a) {
    const uint16x8_t words = vreinterpretq_u16_u8(a);
    if constexpr (N > 0) return vreinterpretq_u8_u16(vshrq_n_u16(words, N));
    if constexpr (N < 0) return vreinterpretq_u8_u16(vshlq_n_u16(words, -N));
    return a;
  }
  // The signed upper halves of 32-bit lanes.
  static int32x4_t upper_words(uint8x16_t a) { return vshrq_n_s32(vreinterpretq_s32_u8(a), 16); }
  static int32x4_t dot_words(uint8x16_t a, uint8x16_t b) {
    const int16x8_t x = vreinterpretq_s16_u8(a);
    const int16x8_t y = vreinterpretq_s16_u8(b);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
  }
  // Index of byte `first` eight times, then of the one behind it.
  static uint8x16_t byte_pair(uint8_t first) {
    return vcombine_u8(vdup_n_u8(first), vdup_n_u8(static_cast<uint8_t>(first + 1)));
  }
  // `value` where bit i % 8 of byte i is set, otherwise 0.
  static uint8x16_t expand(uint8x16_t bytes, int8_t value) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
    return vandq_u8(vtstq_u8(bytes, bit), vdupq_n_u8(static_cast<uint8_t>(value)));
  }
  static void transpose4(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d,
                         uint32x4_t out[4]) {
    const uint32x4_t rows[4] = {vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b),
                                vreinterpretq_u32_u8(c), vreinterpretq_u32_u8(d)};
    const uint64x2_t even01 = vreinterpretq_u64_u32(vtrn1q_u32(rows[0], rows[1]));
    const uint64x2_t odd01 = vreinterpretq_u64_u32(vtrn2q_u32(rows[0], rows[1]));
    const uint64x2_t even23 = vreinterpretq_u64_u32(vtrn1q_u32(rows[2], rows[3]));
    const uint64x2_t odd23 = vreinterpretq_u64_u32(vtrn2q_u32(rows[2], rows[3]));
    out[0] = vreinterpretq_u32_u64(vtrn1q_u64(even01, even23));
    out[1] = vreinterpretq_u32_u64(vtrn1q_u64(odd01, odd23));
    out[2] = vreinterpretq_u32_u64(vtrn2q_u64(even01, even23));
    out[3] = vreinterpretq_u32_u64(vtrn2q_u64(odd01, odd23));
  }
  template <int I, int N>
  static uint16x8_t gather(uint16x8_t v, const uint8_t* p, int stride) {
    if constexpr (I < N) {
      return gather<I + 1, N>(vsetq_lane_u16(word16(p + I * stride), v, I), p, stride);
    }
    return v;
  }
  static Wide four(uint8x16_t a) { return {{a, a, a, a}}; }
  template <typename Function>
  static Wide each(const Wide& a, const Function& function) {
    return {{function(a.part[0], 0), function(a.part[1], 1), function(a.part[2], 2),
             function(a.part[3], 3)}};
  }
  template <typename Function>
  static WideFloats floats(const Function& function) {
    return {{function(0), function(1), function(2), function(3)}};
  }
};

using Neon = NeonVector<WideningDot>;

}  // namespace
}  // namespace optima::kernels
