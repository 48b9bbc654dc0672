// The micro-kernel with VNNI for few activation rows: a panel of 16 rows x up to kPanelColumns
// activation rows, straight from the panel's nibbles or bytes.
#pragma once

#include "kernels/matmul/panel.inl.h"
#include "kernels/matmul/tile_vnni.inl.h"

namespace optima::kernels {
namespace {

template <typename Vector>
struct PanelVnni : TileVnni<Vector> {
  using V = Vector;
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  using Column = typename TileVnni<Vector>::Column;
  static constexpr int kPanelColumns = 8;

  // As panel_scales(), for all sixteen rows.
  template <PanelTraits Traits>
  static void wide_scales(const uint8_t* group, const uint8_t* numbers, WideFloats& d,
                          [[maybe_unused]] WideFloats& c) {
    constexpr int kNumber = 2 * kPanelRows;
    const WideFloats offset = V::wide_set(kQ4Offset);
    if constexpr (Traits.has_factors) {
      const WideFloats min = V::wide_halves(group + kNumber);
      d = V::wide_mul(V::wide_halves(group), V::wide_from_bytes(numbers));
      c = V::wide_sub(V::wide_mul(offset, d),
                      V::wide_mul(min, V::wide_from_bytes(numbers + kPanelRows)));
    } else {
      d = V::wide_halves(numbers);
      if constexpr (Traits.has_min) c = V::wide_fma(offset, d, V::wide_halves(numbers + kNumber));
    }
  }

  template <int C>
  static void add_products(const Wide& w, const Column (&x)[C], int64_t at, Wide (&dot)[C]) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      dot[c] = V::wide_add_dot(dot[c], w, V::wide_broadcast(x[c].q + at));
    }
  }

  template <PanelTraits Traits, int C>
  static void add_panel_block(const uint8_t* group, const uint8_t* codes, const Column (&x)[C],
                              int64_t b, WideFloats (&sum)[C]) {
    constexpr int kOffset = Traits.code_bits == 8 ? 128 : kQ4Offset;
    const Wide offset = V::wide_words(-kOffset);
    Wide dot[C];
    for (int c = 0; c < C; ++c) {
      dot[c] = V::wide_dot_words(V::wide_broadcast(x[c].pairs + 2 * b), offset);
    }
    const int64_t at = b * kActivationBlock;
#pragma GCC unroll 8
    for (int j = 0; j < Traits.code_bits; ++j) {
      const Wide w = V::wide_load(codes + 64 * j);
      if constexpr (Traits.code_bits == 8) {
        add_products<C>(w, x, at + 4 * j, dot);
      } else {
        add_products<C>(V::wide_low(w), x, at + 4 * j, dot);
        add_products<C>(V::wide_high(w), x, at + 16 + 4 * j, dot);
      }
    }
    WideFloats d;
    WideFloats constant;
    wide_scales<Traits>(group, codes - panel_scale_bytes(Traits), d, constant);
    for (int c = 0; c < C; ++c) {
      const WideFloats step = V::wide_mul(d, V::wide_set(x[c].scale[b]));
      sum[c] = V::wide_fma(V::wide_to_float(dot[c]), step, sum[c]);
      if constexpr (Traits.has_min) {
        sum[c] = V::wide_fma(constant, V::wide_set(x[c].sum_x[b]), sum[c]);
      }
    }
  }

  template <PanelTraits Traits, int C>
  [[gnu::noinline]] static void run_panel(const PanelArgs& args) {  // shared by many types
    Column x[C];
    for (int c = 0; c < C; ++c) {
      x[c] = PanelVnni::template column<32>(*args.x, args.first_block, args.m + c);
    }
    WideFloats sum[C];
    for (int c = 0; c < C; ++c) sum[c] = V::wide_zero();
    for (int64_t b = 0; b < args.blocks; ++b) {
      const uint8_t* group = args.panel + panel_group_at(Traits, args.first_block + b);
      const uint8_t* codes = args.panel + panel_codes_at(Traits, args.first_block + b);
      for (int line = 0; line < panel_block_bytes(Traits); line += 64) {
        __builtin_prefetch(codes + kPanelPrefetchBytes + line);
      }
      add_panel_block<Traits, C>(group, codes, x, b, sum);
    }
    for (int c = 0; c < C; ++c) {
      float* out = args.out + (args.m + c) * args.out_stride;
      if (args.accumulate != 0) sum[c] = V::wide_add_first(sum[c], out, args.rows);
      V::wide_store_first(out, sum[c], args.rows);
    }
  }

  // The last activation rows, fewer than kPanelColumns.
  template <PanelTraits Traits>
  static void run_panel_rest(PanelArgs args, int columns) {
    for (; columns >= 4; columns -= 4, args.m += 4) run_panel<Traits, 4>(args);
    for (; columns >= 2; columns -= 2, args.m += 2) run_panel<Traits, 2>(args);
    if (columns == 1) run_panel<Traits, 1>(args);
  }
};

}  // namespace
}  // namespace optima::kernels
