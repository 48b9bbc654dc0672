// Quantises activations on 64-bit Arm. The arithmetic is that of quantise_base.cc, so q, scale and
// the pair sums are equal bit for bit; only the order of the fp32 sums differs.

#include <arm_neon.h>
#include <string.h>

#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

constexpr float kTiny = 1e-30f;  // see quantise_base.cc
constexpr int kVectors = kActivationBlock / 4;

float sum4(const float32x4_t* v) {
  const float32x4_t four = vaddq_f32(vaddq_f32(v[0], v[1]), vaddq_f32(v[2], v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// The largest of the bits of |x|: above infinity's where a NaN is present.
uint32_t largest_magnitude_bits(const float32x4_t (&v)[kVectors]) {
  uint32x4_t largest = vdupq_n_u32(0);
  for (const float32x4_t& part : v) {
    largest = vmaxq_u32(largest, vreinterpretq_u32_f32(vabsq_f32(part)));
  }
  return vmaxvq_u32(largest);
}

int16x8_t narrow(int32x4_t low, int32x4_t high) {
  return vcombine_s16(vmovn_s32(low), vmovn_s32(high));
}

// Sums of sixteen codes over k % 4 in {0, 1} and in {2, 3}.
void pair_sums(int8x16_t q, int16_t* out) {
  const int16x8_t twos = vpaddlq_s8(q);
  const int16x8_t even = vuzp1q_s16(twos, twos);
  const int16x8_t odd = vuzp2q_s16(twos, twos);
  out[0] = vaddv_s16(vget_low_s16(even));
  out[1] = vaddv_s16(vget_low_s16(odd));
}

void quantise_block(const float* x, int64_t block, const QuantisedRows& out) {
  float32x4_t v[kVectors];
  for (int i = 0; i < kVectors; ++i) v[i] = vld1q_f32(x + 4 * i);
  const uint32_t bits = largest_magnitude_bits(v);
  float largest;
  memcpy(&largest, &bits, sizeof largest);
  const bool finite = bits < 0x7f800000u;
  const float inverse = finite && largest > kTiny ? 127.0f / largest : 0.0f;
  const float step = inverse > 0.0f ? largest / 127.0f : 0.0f;
  out.scale[block] = finite ? step : __builtin_nanf("");

  out.sum_x16[2 * block] = sum4(v);
  out.sum_x16[2 * block + 1] = sum4(v + 4);
  out.sum_x[block] = out.sum_x16[2 * block] + out.sum_x16[2 * block + 1];

  int32x4_t codes[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    // In a block that is not finite all becomes 0: infinity and NaN times 0 are NaN, which converts
    // to 0 here.
    codes[i] = vcvtnq_s32_f32(vmulq_n_f32(v[i], inverse));
  }
  int8_t* q = out.q + block * kActivationBlock;
  for (int half = 0; half < 2; ++half) {
    const int32x4_t* c = codes + 4 * half;
    const int8x16_t packed =
        vcombine_s8(vmovn_s16(narrow(c[0], c[1])), vmovn_s16(narrow(c[2], c[3])));
    vst1q_s8(q + 16 * half, packed);
    pair_sums(packed, out.pairs16 + 4 * block + 2 * half);
  }
  const int16_t* pairs = out.pairs16 + 4 * block;
  for (int i = 0; i < 2; ++i) {
    out.pairs[2 * block + i] = static_cast<int16_t>(pairs[i] + pairs[2 + i]);
  }
}

}  // namespace

namespace neon {

void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out) {
  const int64_t blocks = out.k_padded / kActivationBlock;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* values = x + row * k;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t rest = k - b * kActivationBlock;
      if (rest >= kActivationBlock) {
        quantise_block(values + b * kActivationBlock, row * blocks + b, out);
        continue;
      }
      float tail[kActivationBlock] = {};
      memcpy(tail, values + b * kActivationBlock, static_cast<size_t>(rest) * sizeof(float));
      quantise_block(tail, row * blocks + b, out);
    }
  }
}

}  // namespace neon
}  // namespace optima::kernels
