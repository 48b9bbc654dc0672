// The loops of arranged.inl.h with weights in a coarser form: a type's codes of 2 to 6 bits become
// whole bytes with one scale for 64 k of a row, its scales and minimums in them.
//   w ≈ S (code - 128),  S = max |w| of 64 k / 127
// Then nothing is left to do for a block but to multiply its sums by the activations' scale: where
// exact products take three operations for a sum, or six, here it is one, and two for 64 k. Sums
// are kept in units of S: where the next group begins they are multiplied by the quotient of both.
//
// Rounding changes a weight by S / 2 at the most. In RMS it costs 0.45 to 0.6 % of a product with
// random codes and scales, where int8 activations cost 0.53; on models less, since there scales of
// neighbours are nearer to each other. Groups of 128 or 256 k are a few percent faster, but lose
// more than the models' bounds allow (docs/PERFORMANCE.md).
#pragma once

#include "kernels/matmul/arranged.inl.h"

namespace optima::kernels {
namespace {

// kCoarseBlocks blocks of sixteen weight rows.
struct alignas(64) CoarsePiece {
  float quotient[16];  // S before / S; behind the last block of a panel S itself
  uint8_t codes[kCoarseBlocks][8][64];
};

// Makes pieces of TileBlocks whose codes are below 2^CodeBits.
template <typename V, TileTraits Traits, int CodeBits>
struct Coarsener {
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  static constexpr int kParts = 32 / Traits.sub;
  static constexpr int kQuads = 8 / kParts;
  static constexpr float kLeast = 1e-30f;              // S of weights that are all zero
  static constexpr float kLeastOf = 1.0f / (1 << 16);  // of S before, so that quotients are finite

  int offset;

  // The weights of codes 0 and 2^CodeBits - 1.
  struct Range {
    WideFloats d, low, high;
  };
  Range range(const TileBlock& block, int part) const {
    const WideFloats d = V::wide_load_floats(block.d[part]);
    WideFloats low = V::wide_mul(d, V::wide_set(static_cast<float>(-offset)));
    if constexpr (Traits.has_min) low = V::wide_add(low, V::wide_load_floats(block.c[part]));
    return {d, low, V::wide_fma(d, V::wide_set((1 << CodeBits) - 1), low)};
  }

  // NaN where a weight is not finite.
  WideFloats scale(const TileBlock* blocks, int64_t count, WideFloats before) const {
    WideFloats most = V::wide_set(127 * kLeast);
    WideFloats zero = V::wide_zero();
    for (int64_t b = 0; b < count; ++b) {
      for (int part = 0; part < kParts; ++part) {
        const Range r = range(blocks[b], part);
        most = V::wide_max(most, V::wide_abs(r.low));
        most = V::wide_max(most, V::wide_abs(r.high));
        zero = V::wide_fma(r.low, V::wide_zero(), V::wide_fma(r.high, V::wide_zero(), zero));
      }
    }
    const WideFloats own = V::wide_fma(most, V::wide_set(1.0f / 127), zero);
    return V::wide_max(V::wide_mul(before, V::wide_set(kLeastOf)), own);
  }

  // In words with eight bits behind the point: code * d / S + low / S + 128, and a half to round.
  void put_block(const TileBlock& block, WideFloats inverse, uint8_t (*to)[64]) const {
    const WideFloats unit = V::wide_mul(inverse, V::wide_set(256));
    const Wide low_byte = V::wide_words(255);
    const Wide high_byte = V::wide_words(-256);
    for (int part = 0; part < kParts; ++part) {
      const Range r = range(block, part);
      const Wide factor = V::wide_words_twice(V::wide_to_int(V::wide_mul(r.d, unit)));
      const Wide start = V::wide_words_twice(
          V::wide_to_int(V::wide_fma(r.low, unit, V::wide_set(kArrangedOffset * 256 + 128))));
      for (int j = part * kQuads; j < (part + 1) * kQuads; ++j) {
        const Wide codes = V::wide_load(block.codes[j]);
        const Wide even = V::wide_and(codes, low_byte);
        const Wide odd = V::template wide_shift<8>(codes);
        const Wide first = V::template wide_shift<8>(V::wide_mul_add_words(even, factor, start));
        const Wide second = V::wide_mul_add_words(odd, factor, start);
        V::wide_store(to[j], V::wide_or(first, V::wide_and(second, high_byte)));
      }
    }
  }

  void put_panel(const TileBlock* blocks, int64_t count, CoarsePiece* to) const {
    WideFloats before = V::wide_zero();
    for (; count > 0; count -= kCoarseBlocks, blocks += kCoarseBlocks, ++to) {
      const int64_t some = count < kCoarseBlocks ? count : kCoarseBlocks;
      const WideFloats own = scale(blocks, some, before);
      V::wide_store_floats(to->quotient, V::wide_div(before, own));
      const WideFloats inverse = V::wide_div(V::wide_set(1), own);
      for (int64_t b = 0; b < some; ++b) put_block(blocks[b], inverse, to->codes[b]);
      before = own;
    }
    V::wide_store_floats(to->quotient, before);
  }
};

template <typename Vector, TileTraits Traits, int CodeBits>
struct CoarseDot {
  using V = Vector;
  using WideFloats = typename V::WideFloats;
  using Piece = CoarsePiece;

  static constexpr int64_t pieces(int64_t blocks) {
    return (blocks + kCoarseBlocks - 1) / kCoarseBlocks + 1;
  }

  static void put_panel(const TileBlock* blocks, int64_t count, int offset, Piece* to) {
    Coarsener<V, Traits, CodeBits>{offset}.put_panel(blocks, count, to);
  }

  template <int P, int C>
  [[gnu::noinline]] static void run(const Piece* piece, int64_t next, const ArrangedBlocks& blocks,
                                    int first, const ArrangedTarget& target) {
    target.ask_for<P, C>();
    // The loops are unrolled early, so that sums live in registers alone.
    WideFloats sum[P][C];
#pragma GCC unroll 7
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) sum[p][c] = V::wide_zero();
    }
    const ArrangedBlock* x = blocks.x;
    const ArrangedBlock* end = x + blocks.count;
    for (; x < end; ++piece) {
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        const WideFloats quotient = V::wide_load_floats(piece[p * next].quotient);
#pragma GCC unroll 7
        for (int c = 0; c < C; ++c) {
          sum[p][c] = V::wide_fma(sum[p][c], quotient, V::wide_set(x->lift[first + c]));
        }
      }
      const ArrangedBlock* stop = end - x < kCoarseBlocks ? end : x + kCoarseBlocks;
      for (const uint8_t* codes = piece->codes[0][0]; x < stop; ++x, codes += 8 * 64) {
        add_block(codes, next, *x, first, sum);
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const WideFloats scale = V::wide_load_floats(piece[p * next].quotient);
#pragma GCC unroll 7
      for (int c = 0; c < C; ++c) sum[p][c] = V::wide_mul(sum[p][c], scale);
    }
    target.store<V>(sum, target.accumulate);
  }

 private:
  template <int P, int C>
  static inline __attribute__((always_inline)) void add_block(const uint8_t* first_codes,
                                                              int64_t next, const ArrangedBlock& x,
                                                              int first, WideFloats (&sum)[P][C]) {
    const uint8_t* codes[P];
    for (int p = 0; p < P; ++p) {
      codes[p] = first_codes + p * next * static_cast<int64_t>(sizeof(Piece));
    }
    typename V::Wide dot[P][C];
    dot_quads<V, 8>(codes, x.q[first], x.whole + first, dot);
#pragma GCC unroll 7
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        sum[p][c] =
            V::wide_fma(V::wide_as_floats(dot[p][c]), V::wide_set(x.scale[first + c]), sum[p][c]);
      }
    }
  }
};

static_assert((kArrangedStretch / kCoarseBlocks + 1) * sizeof(CoarsePiece) <=
              kArrangedStretch * sizeof(ArrangedTile<TileTraits{16, true, false}>));

// For the table (wide_table.inl.h). Types whose codes are bytes have nothing to gain.
template <typename Vector>
struct CoarseGemm {
  using V = Vector;
  template <typename Rows>
  static void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
    if constexpr (Rows::kCodeBits == 8) {
      SevensGemm<V>::template run<Rows>(args, n_begin, n_end);
    } else {
      using Dot = CoarseDot<V, Rows::kTraits, Rows::kCodeBits>;
      ArrangedGemm<Dot, Rows>(args).run(n_begin, n_end);
    }
  }
};

}  // namespace
}  // namespace optima::kernels
