// IEEE 754 binary16 and bfloat16 to and from fp32, exact, round to nearest even.
//
// Everything is `static`: these functions are compiled into objects of several instruction sets,
// and a shared (weak) copy could be the one that an older CPU cannot run.
#pragma once

#include <stdint.h>
#include <string.h>

namespace optima::kernels {

static inline uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half & 0x7c00u;
  const uint32_t magnitude = half & 0x7fffu;
  // Rebias 15 -> 127; infinity and NaN need the distance twice to reach exponent 255.
  const uint32_t rebias = exponent == 0x7c00u ? 224u << 23 : 112u << 23;
  const uint32_t normal = (magnitude << 13) + rebias;
  // Subnormals are integers in units of 2^-24; the conversion is exact and needs no subnormal fp32.
  const uint32_t subnormal = float_bits(static_cast<float>(magnitude) * 0x1p-24f);
  return float_from_bits(sign | (exponent == 0 ? subnormal : normal));
}

static inline uint16_t float_to_half(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // NaN: quiet, upper payload kept
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;  // 65520 and above round to infinity
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14 the result counts units of 2^-24, which is the unit in the last place of 0.5:
    // the addition rounds to nearest even.
    half = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

// An element that is bfloat16 where 16 bits alone would be taken for binary16.
struct Bf16 {
  uint16_t bits;
};

static inline float bf16_to_float(uint16_t value) {
  return float_from_bits(static_cast<uint32_t>(value) << 16);
}

static inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = float_bits(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded);
}

}  // namespace optima::kernels
