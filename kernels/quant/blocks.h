// Pieces of the block layouts that more than one decoder needs.
//
// 4-bit blocks of 32 keep weight j in the low nibble of byte j and weight j + 16 in the high one.
// K-quants ("super-blocks" of 256) quantise their sub-block scales to 4 or 6 bits as well.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

namespace optima::kernels {

// Offset that turns the unsigned codes of a type into signed values.
inline constexpr int kQ4Offset = 8;
inline constexpr int kQ5Offset = 16;
inline constexpr int kQ3Offset = 4;
inline constexpr int kQ6Offset = 32;
inline constexpr int kMxfp4Offset = 12;

// Values of the 16 codes of IQ4_NL and IQ4_XS.
static constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
// Values of the 16 codes of MXFP4 (E2M1), doubled so that they are integers.
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

static inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

static inline uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

static inline float load_half(const uint8_t* p) {
  return half_to_float(load_u16(p));
}

// Scale of a doubled MXFP4 value: 2^(e - 128). The two smallest are subnormal.
static inline float mxfp4_scale(uint8_t e) {
  return float_from_bits(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// Q4_K, Q5_K: twelve bytes hold eight 6-bit scales and eight 6-bit minima. Bytes 0..3 and 4..7:
// scale and minimum of sub-blocks 0..3 in the low six bits, above them two high bits of sub-blocks
// 4..7, whose low four bits are the nibbles of bytes 8..11.
static inline void unpack_scales_min(const uint8_t* packed, uint8_t scale[8], uint8_t min[8]) {
  for (int j = 0; j < 4; ++j) {
    scale[j] = packed[j] & 63;
    min[j] = packed[j + 4] & 63;
    scale[j + 4] = static_cast<uint8_t>((packed[j + 8] & 15) | (packed[j] >> 6 << 4));
    min[j + 4] = static_cast<uint8_t>((packed[j + 8] >> 4) | (packed[j + 4] >> 6 << 4));
  }
}

// Q3_K: twelve bytes hold sixteen 6-bit scales with offset 32: low nibbles in bytes 0..7 (scales
// 0..7 low, 8..15 high), two high bits in bytes 8..11 (shift 2 * (j / 4)).
static inline void unpack_scales_q3(const uint8_t* packed, int8_t scale[16]) {
  for (int j = 0; j < 16; ++j) {
    const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    const int high = (packed[8 + j % 4] >> (2 * (j / 4))) & 3;
    scale[j] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

// IQ4_XS: eight 6-bit scales with offset 32: nibbles in scales_l, two high bits in scales_h.
static inline int iq4_xs_scale(const uint8_t* block, int j) {
  const int low = (block[4 + j / 2] >> (4 * (j % 2))) & 15;
  const int high = (load_u16(block + 2) >> (2 * j)) & 3;
  return (low | high << 4) - 32;
}

}  // namespace optima::kernels
