// One unpacker per quantised weight type, written once over a vector wrapper V (kernels/vec) and
// shared by the matrix-vector and the matrix-matrix kernels.
//
// A group is 256 weights: one super-block, or eight blocks of 32. Format<V, type> has
//   kBytes            bytes of a group
//   kSub              weights that share a scale: 32 or 16
//   kOffset           w = d * (code - kOffset) + c; kSigned8 formats have signed codes instead
//   kHasMin           whether there is a constant c
//   codes<I>(g)       the 32 codes of block I of the group at g, in the order of the weights
//   scales(g)         d of the eight blocks (of the super-block for kSub 16)
//   mins(g)           c of the eight blocks (kSub 16: of the sixteen halves)
//   sub_scales(g)     kSub 16: sixteen int8 factors of d
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/quant/blocks.h"
#include "kernels/quant/weight_type.h"

namespace optima::kernels {
namespace {

template <typename V, WeightType T>
struct Format;

// The first word of each of eight blocks is a half: the common head of blocks of 32.
template <typename V, int Bytes>
struct SmallBlocks {
  static constexpr int kBlockBytes = Bytes;
  static constexpr int kBytes = 8 * Bytes;
  static constexpr int kBlocks = 8;  // that a row may end after
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static constexpr bool kSigned8 = false;
  static typename V::Floats scales(const uint8_t* g) { return V::gather_halves(g, Bytes); }
};

template <typename V, int Bytes>
struct SuperBlock {
  static constexpr int kBlockBytes = Bytes;
  static constexpr int kBytes = Bytes;
  static constexpr int kBlocks = 1;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static constexpr bool kSigned8 = false;
};

template <typename V>
struct Format<V, WeightType::q4_0> : SmallBlocks<V, 18> {
  static constexpr int kOffset = kQ4Offset;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::load_nibbles(g + 18 * I + 2);
  }
};

// d * u + m with the codes centred: the constant is m + offset * d.
template <typename V, int Bytes, int Offset>
struct SmallBlocksWithMin : SmallBlocks<V, Bytes> {
  static constexpr int kOffset = Offset;
  static constexpr bool kHasMin = true;
  static typename V::Floats mins(const uint8_t* g) {
    const typename V::Floats d = V::gather_halves(g, Bytes);
    return V::fma(V::set(Offset), d, V::gather_halves(g + 2, Bytes));
  }
};

template <typename V>
struct Format<V, WeightType::q4_1> : SmallBlocksWithMin<V, 20, kQ4Offset> {
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::load_nibbles(g + 20 * I + 4);
  }
};

template <typename V>
struct Format<V, WeightType::q5_0> : SmallBlocks<V, 22> {
  static constexpr int kOffset = kQ5Offset;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const uint8_t* block = g + 22 * I;
    return V::bit_or(V::load_nibbles(block + 6), V::expand_bits(load_u32(block + 2), 16));
  }
};

template <typename V>
struct Format<V, WeightType::q5_1> : SmallBlocksWithMin<V, 24, kQ5Offset> {
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const uint8_t* block = g + 24 * I;
    return V::bit_or(V::load_nibbles(block + 8), V::expand_bits(load_u32(block + 4), 16));
  }
};

template <typename V>
struct Format<V, WeightType::q8_0> : SmallBlocks<V, 34> {
  static constexpr int kOffset = 0;
  static constexpr bool kSigned8 = true;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::load(g + 34 * I + 2);
  }
};

template <typename V>
struct Format<V, WeightType::iq4_nl> : SmallBlocks<V, 18> {
  static constexpr int kOffset = 0;
  static constexpr bool kSigned8 = true;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::lookup(V::load_twice(kIq4Values), V::load_nibbles(g + 18 * I + 2));
  }
};

// Values of the MXFP4 codes plus kMxfp4Offset, which makes them small unsigned codes.
inline constexpr uint8_t kMxfp4Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                            12, 11, 10, 9,  8,  6,  4,  0};

template <typename V>
struct Format<V, WeightType::mxfp4> : SmallBlocks<V, 17> {
  static constexpr int kOffset = kMxfp4Offset;
  static typename V::Floats scales(const uint8_t* g) {
    float d[8];
    for (int i = 0; i < 8; ++i) d[i] = mxfp4_scale(g[17 * i]);
    return V::load_floats(d);
  }
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::lookup(V::load_twice(kMxfp4Codes), V::load_nibbles(g + 17 * I + 1));
  }
};

// Eight nibbles of a word, and eight 2-bit fields of a half word, one a byte.
static inline uint64_t spread_nibbles(uint64_t x) {
  x = (x | x << 16) & 0x0000ffff0000ffffull;
  x = (x | x << 8) & 0x00ff00ff00ff00ffull;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
}
static inline uint64_t spread_pairs(uint64_t x) {
  x = (x | x << 24) & 0x000000ff000000ffull;
  x = (x | x << 12) & 0x000f000f000f000full;
  return (x | x << 6) & 0x0303030303030303ull;
}

template <typename V>
struct Format<V, WeightType::iq4_xs> : SuperBlock<V, 136> {
  static constexpr int kOffset = 0;
  static constexpr bool kSigned8 = true;
  static typename V::Floats scales(const uint8_t* g) {
    const uint64_t scale = spread_nibbles(load_u32(g + 4)) | spread_pairs(load_u16(g + 2)) << 4;
    return V::mul(V::set(V::half(g)), V::sub(V::from_bytes(scale), V::set(32.0f)));
  }
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::lookup(V::load_twice(kIq4Values), V::load_nibbles(g + 8 + 16 * I));
  }
};

// The eight 6-bit scales and minima of Q4_K and Q5_K (see unpack_scales_min), one a byte.
static inline uint64_t k_scales(const uint8_t* packed) {
  const uint32_t low = load_u32(packed);
  const uint32_t high = (load_u32(packed + 8) & 0x0f0f0f0fu) | (low >> 2 & 0x30303030u);
  return (low & 0x3f3f3f3fu) | static_cast<uint64_t>(high) << 32;
}
static inline uint64_t k_mins(const uint8_t* packed) {
  const uint32_t low = load_u32(packed + 4);
  const uint32_t high = (load_u32(packed + 8) >> 4 & 0x0f0f0f0fu) | (low >> 2 & 0x30303030u);
  return (low & 0x3f3f3f3fu) | static_cast<uint64_t>(high) << 32;
}

template <typename V, int Bytes, int Offset>
struct SuperBlockWithMin : SuperBlock<V, Bytes> {
  static constexpr int kOffset = Offset;
  static constexpr bool kHasMin = true;
  static typename V::Floats scales(const uint8_t* g) {
    return V::mul(V::set(V::half(g)), V::from_bytes(k_scales(g + 4)));
  }
  static typename V::Floats mins(const uint8_t* g) {
    const typename V::Floats min = V::mul(V::set(V::half(g + 2)), V::from_bytes(k_mins(g + 4)));
    return V::sub(V::mul(V::set(Offset), scales(g)), min);
  }
};

template <typename V>
struct Format<V, WeightType::q4_k> : SuperBlockWithMin<V, 144, kQ4Offset> {
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const typename V::Bytes bytes = V::load(g + 16 + 32 * (I / 2));
    return V::bit_and(V::template shift<4 * (I % 2)>(bytes), V::fill(15));
  }
};

template <typename V>
struct Format<V, WeightType::q5_k> : SuperBlockWithMin<V, 176, kQ5Offset> {
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const typename V::Bytes bytes = V::load(g + 48 + 32 * (I / 2));
    const typename V::Bytes high = V::template shift<I - 4>(V::load(g + 16));
    return V::bit_or(V::bit_and(V::template shift<4 * (I % 2)>(bytes), V::fill(15)),
                     V::bit_and(high, V::fill(16)));
  }
};

template <typename V>
struct Format<V, WeightType::q6_k> : SuperBlock<V, 210> {
  static constexpr int kOffset = kQ6Offset;
  static constexpr int kSub = 16;
  static typename V::Floats scales(const uint8_t* g) { return V::set(V::half(g + 208)); }
  static void sub_scales(const uint8_t* g, int8_t out[16]) { memcpy(out, g + 192, 16); }
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    constexpr int kHalf = I / 4;
    constexpr int kSlice = I % 4;
    const typename V::Bytes low = V::load(g + 64 * kHalf + 32 * (kSlice % 2));
    const typename V::Bytes high = V::load(g + 128 + 32 * kHalf);
    return V::bit_or(V::bit_and(V::template shift<4 * (kSlice / 2)>(low), V::fill(15)),
                     V::bit_and(V::template shift<2 * kSlice - 4>(high), V::fill(0x30)));
  }
};

template <typename V>
struct Format<V, WeightType::q3_k> : SuperBlock<V, 110> {
  static constexpr int kOffset = kQ3Offset;
  static constexpr int kSub = 16;
  static typename V::Floats scales(const uint8_t* g) { return V::set(V::half(g + 108)); }
  static void sub_scales(const uint8_t* g, int8_t out[16]) {
    uint64_t low;
    memcpy(&low, g + 96, sizeof low);
    const uint64_t high = load_u32(g + 104);
    const uint64_t high_pair = high | high >> 2 << 32;  // bits of scales 0..3, then of 4..7
    uint64_t scale[2];
    scale[0] = (low & 0x0f0f0f0f0f0f0f0full) | (high_pair & 0x0303030303030303ull) << 4;
    scale[1] = (low >> 4 & 0x0f0f0f0f0f0f0f0full) | (high_pair & 0x3030303030303030ull);
    memcpy(out, scale, sizeof scale);
    for (int i = 0; i < 16; ++i) out[i] = static_cast<int8_t>(out[i] - 32);
  }
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const typename V::Bytes low = V::template shift<2 * (I % 4)>(V::load(g + 32 + 32 * (I / 4)));
    const typename V::Bytes high = V::template shift<I - 2>(V::load(g));
    return V::bit_or(V::bit_and(low, V::fill(3)), V::bit_and(high, V::fill(4)));
  }
};

template <typename V>
struct Format<V, WeightType::q2_k> : SuperBlock<V, 84> {
  static constexpr int kOffset = 2;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = true;
  static typename V::Floats scales(const uint8_t* g) { return V::set(V::half(g + 80)); }
  static void sub_scales(const uint8_t* g, int8_t out[16]) {
    for (int i = 0; i < 16; ++i) out[i] = g[i] & 15;
  }
  static void mins(const uint8_t* g, float out[16]) {
    const float d = V::half(g + 80);
    const float dmin = V::half(g + 82);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(kOffset * (g[i] & 15)) - dmin * static_cast<float>(g[i] >> 4);
    }
  }
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const typename V::Bytes bytes = V::load(g + 16 + 32 * (I / 4));
    return V::bit_and(V::template shift<2 * (I % 4)>(bytes), V::fill(3));
  }
};

}  // namespace
}  // namespace optima::kernels
