// The micro-kernel with VNNI: 32 weight rows (two tiles) x up to 6 activation rows, all sums in
// registers (12 of int32, 12 of fp32, 2 of weights, 1 of activations).
//
// vpdpbusd multiplies u8 codes by s8 activations and adds four products to an int32 lane without
// saturation. A lane starts at -offset * Σ q, so it ends at the exact Σ (code - offset) q.
#pragma once

#include "kernels/matmul/gemm.inl.h"

namespace optima::kernels {
namespace {

template <typename Vector>
struct TileVnni {
  using V = Vector;
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  static constexpr bool kWideCodes = true;
  static constexpr int kColumns = 6;
  static constexpr int kPanels = 2;

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
    for (int c = 0; c < C; ++c) {
      const Wide start = V::wide_dot_words(V::wide_broadcast(x[c].pairs + 2 * at), offset);
      for (int p = 0; p < P; ++p) dot[c][p] = start;
    }
#pragma GCC unroll 8
    for (int j = 0; j < kSteps; ++j) {
      Wide w[P];
      for (int p = 0; p < P; ++p) {
        w[p] = V::wide_load(tile[p * kStretchBlocks].codes[part * kSteps + j]);
      }
#pragma GCC unroll 6
      for (int c = 0; c < C; ++c) {
        const Wide a = V::wide_broadcast(x[c].q + b * kActivationBlock + 4 * (part * kSteps + j));
        for (int p = 0; p < P; ++p) dot[c][p] = V::wide_add_dot(dot[c][p], w[p], a);
      }
    }
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
    if (args.rows > kPanelRows) {
      run_panels<Traits, 2, C>(args);
    } else {
      run_panels<Traits, 1, C>(args);
    }
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
