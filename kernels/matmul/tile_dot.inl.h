// The micro-kernel with instructions that multiply bytes and add four products to an int32 lane
// without saturation: VNNI's (u8 codes times s8 activations) and Arm's (both s8). A lane starts at
// -offset * Σ q, so it ends at the exact Σ (code - offset) q.
//
// With VNNI 32 weight rows (two tiles) x up to 6 activation rows have all their sums in registers
// (12 of int32, 12 of fp32, 2 of weights, 1 of activations). On Arm a tile x 4 activation rows has
// the sums of a block there (16 of int32, 4 of weights), those of the stretch move once a block.
#pragma once

#include "kernels/matmul/gemm.inl.h"

namespace optima::kernels {
namespace {

template <typename Vector>
struct TileDot {
  using V = Vector;
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  static constexpr bool kWideCodes = true;
  static constexpr bool kSignedCodes = V::kSignedCodes;
  static constexpr int kColumns = V::kTileColumns;
  static constexpr int kPanels = V::kTilePanels;

  // One activation row, from the stretch's first block on; sums and pairs are those of blocks of
  // 16 where the type has them.
  struct Column {
    const int8_t* q;
    const float* scale;
    const float* sum_x;
    const int16_t* pairs;
  };

  template <int Sub>
  static Column column(const QuantisedRows& x, int64_t first_block, int64_t m) {
    const int64_t at = m * (x.k_padded / kActivationBlock) + first_block;
    if constexpr (Sub == 16) {
      return {x.q + at * kActivationBlock, x.scale + at, x.sum_x16 + 2 * at, x.pairs16 + 4 * at};
    }
    return {x.q + at * kActivationBlock, x.scale + at, x.sum_x + at, x.pairs + 2 * at};
  }

  // dot += 4 * Steps codes of the rows of P tiles times those of C activation rows.
  template <int Steps, int P, int C>
  static void multiply(const uint8_t* const (&codes)[P], const int8_t* const (&q)[C],
                       Wide (&dot)[C][P]) {
    if constexpr (V::kSquares && C % 2 == 0) {
      for (int p = 0; p < P; ++p) multiply_squares<Steps, P, C>(codes[p], q, p, dot);
      return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < Steps; ++j) {
      Wide w[P];
      for (int p = 0; p < P; ++p) w[p] = V::wide_load(codes[p] + 64 * j);
#pragma GCC unroll 6
      for (int c = 0; c < C; ++c) {
        const Wide a = V::wide_broadcast(q[c] + 4 * j);
        for (int p = 0; p < P; ++p) dot[c][p] = V::wide_add_dot(dot[c][p], w[p], a);
      }
    }
  }

  // The same of tile p, two activation rows at a time.
  template <int Steps, int P, int C>
  static void multiply_squares(const uint8_t* codes, const int8_t* const (&q)[C], int p,
                               Wide (&dot)[C][P]) {
    typename V::Square square[C / 2];
    for (auto& sum : square) sum = V::square_zero();
#pragma GCC unroll 4
    for (int j = 0; j < Steps; j += 2) {
      const auto w = V::eights(V::wide_load(codes + 64 * j), V::wide_load(codes + 64 * j + 64));
#pragma GCC unroll 3
      for (int c = 0; c < C; c += 2) {
        V::square_add(square[c / 2], w, q[c] + 4 * j, q[c + 1] + 4 * j);
      }
    }
    for (int c = 0; c < C; c += 2) V::square_split(square[c / 2], dot[c][p], dot[c + 1][p]);
  }

  // Part `part` (all, or one half) of block b of P tiles times C activation rows.
  template <TileTraits Traits, int P, int C>
  static void add_part(const TileArgs& args, const Column (&x)[C], int64_t b, int part,
                       WideFloats (&sum)[C][P]) {
    constexpr int kParts = 32 / Traits.sub;
    constexpr int kSteps = 8 / kParts;
    const int64_t at = b * kParts + part;
    const TileBlock* tile = args.tile + b;
    const Wide offset = V::wide_words(static_cast<int16_t>(-args.offset));
    Wide dot[C][P];
    const uint8_t* codes[P];
    for (int c = 0; c < C; ++c) {
      const Wide start = V::wide_dot_words(V::wide_broadcast(x[c].pairs + 2 * at), offset);
      for (int p = 0; p < P; ++p) dot[c][p] = start;
    }
    const int8_t* q[C];
    for (int c = 0; c < C; ++c) q[c] = x[c].q + b * kActivationBlock + 4 * part * kSteps;
    for (int p = 0; p < P; ++p) {
      codes[p] = tile[p * kStretchBlocks].codes[part * kSteps];
    }
    multiply<kSteps, P, C>(codes, q, dot);
    for (int p = 0; p < P; ++p) {
      const WideFloats d = V::wide_load_floats(tile[p * kStretchBlocks].d[part]);
      for (int c = 0; c < C; ++c) {
        const WideFloats step = V::wide_mul(d, V::wide_set(x[c].scale[b]));
        sum[c][p] = V::wide_fma(V::wide_to_float(dot[c][p]), step, sum[c][p]);
      }
      if constexpr (Traits.has_min) {
        const WideFloats constant = V::wide_load_floats(tile[p * kStretchBlocks].c[part]);
        for (int c = 0; c < C; ++c) {
          sum[c][p] = V::wide_fma(constant, V::wide_set(x[c].sum_x[at]), sum[c][p]);
        }
      }
    }
  }

  template <TileTraits Traits, int P, int C>
  [[gnu::noinline]] static void run_panels(const TileArgs& args) {  // shared by many types
    Column x[C];
    for (int c = 0; c < C; ++c) x[c] = column<Traits.sub>(*args.x, args.first_block, args.m + c);
    WideFloats sum[C][P];
    for (int c = 0; c < C; ++c) {
      for (int p = 0; p < P; ++p) sum[c][p] = V::wide_zero();
    }
    for (int64_t b = 0; b < args.blocks; ++b) {
      for (int part = 0; part < 32 / Traits.sub; ++part) {
        add_part<Traits, P, C>(args, x, b, part, sum);
      }
    }
    for (int c = 0; c < C; ++c) {
      for (int p = 0; p < P; ++p) {
        float* out = args.out + (args.m + c) * args.out_stride + p * kPanelRows;
        const int rest = args.rows - p * kPanelRows;
        const int rows = rest < kPanelRows ? rest : kPanelRows;
        WideFloats value = sum[c][p];
        if (args.accumulate != 0) value = V::wide_add_first(value, out, rows);
        V::wide_store_first(out, value, rows);
      }
    }
  }

  template <TileTraits Traits, int C>
  static void run(const TileArgs& args) {
    if constexpr (kPanels == 2) {
      if (args.rows > kPanelRows) return run_panels<Traits, 2, C>(args);
    }
    run_panels<Traits, 1, C>(args);
  }

  // The last activation rows, fewer than kColumns.
  template <TileTraits Traits>
  static void run_rest(TileArgs args, int columns) {
    for (; columns >= 3; columns -= 3, args.m += 3) run<Traits, 3>(args);
    if (columns == 2) run<Traits, 2>(args);
    if (columns == 1) run<Traits, 1>(args);
  }
};

}  // namespace
}  // namespace optima::kernels
