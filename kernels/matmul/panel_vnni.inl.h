// The micro-kernel with VNNI for few activation rows: a panel of 16 rows x up to kPanelColumns
// activation rows, straight from the panel's codes.
#pragma once

#include "kernels/matmul/panel.inl.h"
#include "kernels/matmul/tile_vnni.inl.h"

namespace optima::kernels {
namespace {

// The 64-byte operations under the names of the 32-byte ones.
template <typename V>
struct WideBytes {
  static auto load(const uint8_t* p) { return V::wide_load(p); }
  static auto fill(int8_t value) { return V::wide_fill(value); }
  static auto bit_and(const typename V::Wide& a, const typename V::Wide& b) {
    return V::wide_and(a, b);
  }
  static auto bit_or(const typename V::Wide& a, const typename V::Wide& b) {
    return V::wide_or(a, b);
  }
  template <int N>
  static auto shift(const typename V::Wide& a) {
    return V::template wide_shift<N>(a);
  }
};

template <typename Vector>
struct PanelVnni : TileVnni<Vector> {
  using V = Vector;
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  using Column = typename TileVnni<Vector>::Column;
  static constexpr int kPanelColumns = 8;

  // As panel_scales(), for all sixteen rows; with of_halves the scale of one half.
  template <PanelTraits Traits>
  static void wide_scales(const uint8_t* group, const uint8_t* numbers, int part, WideFloats& d,
                          [[maybe_unused]] WideFloats& c) {
    constexpr int kNumber = 2 * kPanelRows;
    const WideFloats offset = V::wide_set(panel_code_offset(Traits));
    if constexpr (Traits.factors == PanelFactors::of_block) {
      const WideFloats min = V::wide_halves(group + kNumber);
      d = V::wide_mul(V::wide_halves(group), V::wide_from_bytes(numbers));
      c = V::wide_sub(V::wide_mul(offset, d),
                      V::wide_mul(min, V::wide_from_bytes(numbers + kPanelRows)));
    } else if constexpr (Traits.factors == PanelFactors::of_halves) {
      d = V::wide_mul(V::wide_halves(group), V::wide_from_int8(numbers + kPanelRows * part));
    } else {
      d = V::wide_halves(numbers);
      if constexpr (Traits.has_min) c = V::wide_fma(offset, d, V::wide_halves(numbers + kNumber));
    }
  }

  template <PanelTraits Traits, int J>
  static Wide quad(const uint8_t* codes) {
    if constexpr (Traits.code_bits == 8) return V::wide_load(codes + 64 * J);
    return panel_quad<WideBytes<V>, Traits, J>(codes, 0);
  }

  template <PanelTraits Traits, int C, int... J>
  static void add_quads(const uint8_t* codes, const Column (&x)[C], int64_t at, Wide (&dot)[C],
                        Indices<J...>) {
    const auto add = [&]<int Quad>(Indices<Quad>) __attribute__((always_inline)) {
      const Wide w = quad<Traits, Quad>(codes);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        dot[c] = V::wide_add_dot(dot[c], w, V::wide_broadcast(x[c].q + at + 4 * Quad));
      }
    };
    (add(Indices<J>{}), ...);
  }

  // Part `part` (all, or one half) of a block, whose quads are J.
  template <PanelTraits Traits, int C, int... J>
  static void add_part(const PanelBlock& block, const Column (&x)[C], int part,
                       WideFloats (&sum)[C], Indices<J...> quads) {
    const int64_t b = block.index;
    constexpr int kParts = 32 / panel_sub(Traits);
    const Wide offset = V::wide_words(static_cast<int16_t>(-panel_code_offset(Traits)));
    Wide dot[C];
    for (int c = 0; c < C; ++c) {
      const int16_t* pairs = x[c].pairs + 2 * (kParts * b + part);
      dot[c] = V::wide_dot_words(V::wide_broadcast(pairs), offset);
    }
    add_quads<Traits, C>(block.codes, x, b * kActivationBlock, dot, quads);
    WideFloats d;
    WideFloats constant;
    wide_scales<Traits>(block.group, block.codes - panel_scale_bytes(Traits), part, d, constant);
    for (int c = 0; c < C; ++c) {
      const WideFloats step = V::wide_mul(d, V::wide_set(x[c].scale[b]));
      sum[c] = V::wide_fma(V::wide_to_float(dot[c]), step, sum[c]);
      if constexpr (Traits.has_min) {
        sum[c] = V::wide_fma(constant, V::wide_set(x[c].sum_x[b]), sum[c]);
      }
    }
  }

  template <PanelTraits Traits, int C>
  static void add_panel_block(const PanelBlock& block, const Column (&x)[C], WideFloats (&sum)[C]) {
    if constexpr (Traits.factors == PanelFactors::of_halves) {
      add_part<Traits, C>(block, x, 0, sum, Indices<0, 1, 2, 3>{});
      add_part<Traits, C>(block, x, 1, sum, Indices<4, 5, 6, 7>{});
    } else {
      add_part<Traits, C>(block, x, 0, sum, Indices<0, 4, 1, 5, 2, 6, 3, 7>{});
    }
  }

  template <PanelTraits Traits, int C>
  [[gnu::noinline]] static void run_panel(const PanelArgs& args) {  // shared by many types
    Column x[C];
    for (int c = 0; c < C; ++c) {
      x[c] = PanelVnni::template column<panel_sub(Traits)>(*args.x, args.first_block, args.m + c);
    }
    WideFloats sum[C];
    for (int c = 0; c < C; ++c) sum[c] = V::wide_zero();
    for (int64_t b = 0; b < args.blocks; ++b) {
      add_panel_block<Traits, C>(panel_block<Traits>(args, b), x, sum);
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
