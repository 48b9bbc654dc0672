// One unpacker per quantised weight type, written once over a vector wrapper V (kernels/vec) and
// shared by the matrix-vector and the matrix-matrix kernels.
//
// A group is 256 weights: one super-block, or eight blocks of 32. Format<V, type> has
//   kBytes            bytes of a group
//   kSub              weights that share a scale: 32 or 16
//   kOffset           w = d * (code - kOffset) + c; kSigned8 formats have signed codes instead
//   kHasMin           whether there is a constant c
//   codes<I>(g)       the 32 codes of block I of the group at g, in the order of the weights
//   scales<N>(g, d, c)  kSub 32: d and (kHasMin) c of the first N blocks, 0 above
//   scale(g)            kSub 16: d of the super-block
//   factors(g, f)       kSub 16: sixteen int8 factors of d, as two words
//   mins(g, c)          kSub 16: c of the sixteen halves
//   pair<I>(g, lo, hi)  kPairs: codes of blocks I and I + 4 (I < 4) in another order: the lower 16
//                       of both, the upper 16 of both. Cheaper where a block's codes are nibbles.
// N is 8, or 4, 2, 1 at the end of a row of small blocks; nothing behind block N is read.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/quant/blocks.h"
#include "kernels/quant/weight_type.h"

namespace optima::kernels {
namespace {

template <typename V, WeightType T>
struct Format;

// Blocks of 32 whose first word is the binary16 scale.
template <typename V, int Bytes>
struct SmallBlocks {
  using B = typename V::Bytes;
  using Floats = typename V::Floats;
  static constexpr int kBlockBytes = Bytes;
  static constexpr int kBytes = 8 * Bytes;
  static constexpr bool kWhole = false;  // a row may end after any block
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static constexpr bool kSigned8 = false;
  static constexpr bool kPairs = false;
  template <int N>
  static void scales(const uint8_t* g, Floats& d, Floats& /*c*/) {
    d = V::template gather_halves<N>(g, Bytes);
  }
};

template <typename V, int Bytes>
struct SuperBlock {
  using B = typename V::Bytes;
  using Floats = typename V::Floats;
  static constexpr int kBlockBytes = Bytes;
  static constexpr int kBytes = Bytes;
  static constexpr bool kWhole = true;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static constexpr bool kSigned8 = false;
  static constexpr bool kPairs = false;
};

// Blocks of 16 bytes of nibbles, At bytes into a block; blocks are Stride bytes apart.
template <typename V, int At, int Stride>
struct NibbleCodes {
  static constexpr bool kPairs = true;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::load_nibbles(g + Stride * I + At);
  }
  template <int I>
  static void pair(const uint8_t* g, typename V::Bytes& low, typename V::Bytes& high) {
    V::load_nibble_pair(g + Stride * I + At, g + Stride * (I + 4) + At, low, high);
  }
};

// The same, each nibble standing for the entry of a table of 16.
template <typename V, int At, int Stride, const auto& Table>
struct TableCodes {
  using Nibbles = NibbleCodes<V, At, Stride>;
  static constexpr bool kPairs = true;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    return V::lookup(V::load_twice(Table), Nibbles::template codes<I>(g));
  }
  template <int I>
  static void pair(const uint8_t* g, typename V::Bytes& low, typename V::Bytes& high) {
    Nibbles::template pair<I>(g, low, high);
    low = V::lookup(V::load_twice(Table), low);
    high = V::lookup(V::load_twice(Table), high);
  }
};

// The same as NibbleCodes with bit j of a 32-bit word, HighAt bytes into the block, as fifth bit.
template <typename V, int HighAt, int At, int Stride>
struct FiveBitCodes {
  using Nibbles = NibbleCodes<V, At, Stride>;
  static constexpr bool kPairs = true;
  template <int I>
  static typename V::Bytes codes(const uint8_t* g) {
    const uint32_t high = load_u32(g + Stride * I + HighAt);
    return V::bit_or(Nibbles::template codes<I>(g), V::expand_bits(high, 16));
  }
  template <int I>
  static void pair(const uint8_t* g, typename V::Bytes& low, typename V::Bytes& high) {
    Nibbles::template pair<I>(g, low, high);
    typename V::Bytes low_bit;
    typename V::Bytes high_bit;
    V::expand_bit_pair(g + Stride * I + HighAt, g + Stride * (I + 4) + HighAt, 16, low_bit,
                       high_bit);
    low = V::bit_or(low, low_bit);
    high = V::bit_or(high, high_bit);
  }
};

// d * u + m with the codes centred: the constant is m + offset * d.
template <typename V, int Bytes, int Offset>
struct SmallBlocksWithMin : SmallBlocks<V, Bytes> {
  static constexpr int kOffset = Offset;
  static constexpr bool kHasMin = true;
  template <int N>
  static void scales(const uint8_t* g, typename V::Floats& d, typename V::Floats& c) {
    typename V::Floats m;
    V::template gather_half_pairs<N>(g, Bytes, d, m);
    c = V::fma(V::set(Offset), d, m);
  }
};

template <typename V>
struct Format<V, WeightType::q4_0> : SmallBlocks<V, 18>, NibbleCodes<V, 2, 18> {
  static constexpr int kOffset = kQ4Offset;
  static constexpr bool kPairs = true;
};

template <typename V>
struct Format<V, WeightType::q4_1> : SmallBlocksWithMin<V, 20, kQ4Offset>, NibbleCodes<V, 4, 20> {
  static constexpr bool kPairs = true;
};

template <typename V>
struct Format<V, WeightType::q5_0> : SmallBlocks<V, 22>, FiveBitCodes<V, 2, 6, 22> {
  static constexpr int kOffset = kQ5Offset;
  static constexpr bool kPairs = true;
};

template <typename V>
struct Format<V, WeightType::q5_1> : SmallBlocksWithMin<V, 24, kQ5Offset>,
                                     FiveBitCodes<V, 4, 8, 24> {
  static constexpr bool kPairs = true;
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
struct Format<V, WeightType::iq4_nl> : SmallBlocks<V, 18>, TableCodes<V, 2, 18, kIq4Values> {
  static constexpr int kOffset = 0;
  static constexpr bool kSigned8 = true;
  static constexpr bool kPairs = true;
};

// Values of the MXFP4 codes plus kMxfp4Offset, which makes them small unsigned codes.
inline constexpr uint8_t kMxfp4Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                            12, 11, 10, 9,  8,  6,  4,  0};

template <typename V>
struct Format<V, WeightType::mxfp4> : SmallBlocks<V, 17>, TableCodes<V, 1, 17, kMxfp4Codes> {
  static constexpr int kOffset = kMxfp4Offset;
  static constexpr bool kPairs = true;
  // Subnormal scales (below 2^-126) count as zero.
  template <int N>
  static void scales(const uint8_t* g, typename V::Floats& d, typename V::Floats& /*c*/) {
    d = V::template gather_exponents<N>(g, 17);
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
struct Format<V, WeightType::iq4_xs> : SuperBlock<V, 136>, TableCodes<V, 8, 16, kIq4Values> {
  static constexpr int kOffset = 0;
  static constexpr bool kSigned8 = true;
  static constexpr bool kPairs = true;
  template <int N>
  static void scales(const uint8_t* g, typename V::Floats& d, typename V::Floats& /*c*/) {
    const uint64_t scale = spread_nibbles(load_u32(g + 4)) | spread_pairs(load_u16(g + 2)) << 4;
    d = V::mul(V::set(V::half(g)), V::sub(V::from_bytes(scale), V::set(32.0f)));
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
  template <int N>
  static void scales(const uint8_t* g, typename V::Floats& d, typename V::Floats& c) {
    d = V::mul(V::set(V::half(g)), V::from_bytes(k_scales(g + 4)));
    c = V::sub(V::mul(V::set(Offset), d),
               V::mul(V::set(V::half(g + 2)), V::from_bytes(k_mins(g + 4))));
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
  static float scale(const uint8_t* g) { return V::half(g + 208); }
  static void factors(const uint8_t* g, uint64_t out[2]) { memcpy(out, g + 192, 16); }
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
  static float scale(const uint8_t* g) { return V::half(g + 108); }
  static void factors(const uint8_t* g, uint64_t out[2]) {
    uint64_t low;
    memcpy(&low, g + 96, sizeof low);
    const uint64_t high = load_u32(g + 104);
    const uint64_t high_pair = high | high >> 2 << 32;  // bits of factors 0..3, then of 4..7
    out[0] = minus_32((low & 0x0f0f0f0f0f0f0f0full) | (high_pair & 0x0303030303030303ull) << 4);
    out[1] = minus_32((low >> 4 & 0x0f0f0f0f0f0f0f0full) | (high_pair & 0x3030303030303030ull));
  }
  // u - 32 of eight 6-bit bytes: flip bit 5 and extend it upwards as the sign.
  static uint64_t minus_32(uint64_t u) {
    const uint64_t flipped = u ^ 0x2020202020202020ull;
    const uint64_t sign = flipped & 0x2020202020202020ull;
    return flipped | sign << 1 | sign << 2;
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
  static float scale(const uint8_t* g) { return V::half(g + 80); }
  static void factors(const uint8_t* g, uint64_t out[2]) {
    memcpy(out, g, 16);
    for (int i = 0; i < 2; ++i) out[i] &= 0x0f0f0f0f0f0f0f0full;
  }
  static void mins(const uint8_t* g, typename V::Floats c[2]) {
    uint64_t packed[2];
    memcpy(packed, g, sizeof packed);
    const typename V::Floats step = V::set(V::half(g + 80) * kOffset);
    const typename V::Floats min = V::set(V::half(g + 82));
    for (int i = 0; i < 2; ++i) {
      const typename V::Floats m = V::from_bytes(packed[i] >> 4 & 0x0f0f0f0f0f0f0f0full);
      const typename V::Floats f = V::from_bytes(packed[i] & 0x0f0f0f0f0f0f0f0full);
      c[i] = V::sub(V::mul(step, f), V::mul(min, m));
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
