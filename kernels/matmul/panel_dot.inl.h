// The micro-kernel with VNNI or Arm's dot products for few activation rows: a panel of 16 rows x up
// to kPanelColumns activation rows, straight from the panel's codes.
#pragma once

#include "kernels/matmul/panel.inl.h"
#include "kernels/matmul/tile_dot.inl.h"

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
struct PanelDot : TileDot<Vector> {
  using V = Vector;
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  using Column = typename TileDot<Vector>::Column;
  static constexpr int kPanelColumns = V::kPanelColumns;

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
    if constexpr (Traits.code_bits == 8) {
      const Wide w = V::wide_load(codes + 64 * J);
      if constexpr (V::kSignedCodes) return V::wide_xor(w, V::wide_fill(-128));
      return w;
    }
    return panel_quad<WideBytes<V>, Traits, J>(codes, 0);
  }

  template <PanelTraits Traits, int C, int... J>
  static void add_quads(const uint8_t* codes, const Column (&x)[C], int64_t at, Wide (&dot)[C],
                        [[maybe_unused]] Indices<J...> quads) {
    if constexpr (V::kSquares && C % 2 == 0) {
      return add_squares<Traits, C>(codes, x, at, dot, quads);
    }
    const auto add = [&]<int Quad>(Indices<Quad>) __attribute__((always_inline)) {
      const Wide w = quad<Traits, Quad>(codes);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        dot[c] = V::wide_add_dot(dot[c], w, V::wide_broadcast(x[c].q + at + 4 * Quad));
      }
    };
    (add(Indices<J>{}), ...);
  }

  // The same, two quads and two activation rows at a time.
  template <PanelTraits Traits, int C, int... J>
  static void add_squares(const uint8_t* codes, const Column (&x)[C], int64_t at, Wide (&dot)[C],
                          Indices<J...>) {
    typename V::Square square[C / 2];
    for (auto& sum : square) sum = V::square_zero();
    const auto add = [&]<int Quad>(Indices<Quad>) __attribute__((always_inline)) {
      if constexpr (Quad % 2 == 0) {
        const auto w = V::eights(quad<Traits, Quad>(codes), quad<Traits, Quad + 1>(codes));
        for (int c = 0; c < C; c += 2) {
          V::square_add(square[c / 2], w, x[c].q + at + 4 * Quad, x[c + 1].q + at + 4 * Quad);
        }
      }
    };
    (add(Indices<J>{}), ...);
    for (int c = 0; c < C; c += 2) V::square_split(square[c / 2], dot[c], dot[c + 1]);
  }

  // Part `part` (all, or one half) of a block, whose quads are J.
  template <PanelTraits Traits, int C, int... J>
  static void add_part(const PanelBlock& block, const Column (&x)[C], int part,
                       WideFloats (&sum)[C], Indices<J...> quads) {
    const int64_t b = block.index;
    constexpr int kParts = 32 / panel_sub(Traits);
    constexpr int kOffset =
        Traits.code_bits == 8 && V::kSignedCodes ? 0 : panel_code_offset(Traits);
    const Wide offset = V::wide_words(static_cast<int16_t>(-kOffset));
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
  [[gnu::noinline]] static void run_panels(const PanelArgs& args) {  // shared by many types
    constexpr int kPanels = panels_at_most(C);
    const int panels = kPanels == 1 ? 1 : args.panels;
    Column x[C];
    for (int c = 0; c < C; ++c) {
      x[c] = PanelDot::template column<panel_sub(Traits)>(*args.x, args.first_block, args.m + c);
    }
    WideFloats sum[kPanels][C];
    for (int p = 0; p < panels; ++p)
      for (int c = 0; c < C; ++c) sum[p][c] = V::wide_zero();
    for_panel_blocks<Traits, C>(
        args, [&](const PanelBlock& block, int p)
                  __attribute__((always_inline)) { add_panel_block<Traits, C>(block, x, sum[p]); });
    for (int p = 0; p < panels; ++p) {
      const int64_t rest = args.rows - kPanelRows * p;
      const auto rows = static_cast<int>(rest < kPanelRows ? rest : kPanelRows);
      for (int c = 0; c < C; ++c) {
        float* out = args.out + kPanelRows * p + (args.m + c) * args.out_stride;
        if (args.accumulate != 0) sum[p][c] = V::wide_add_first(sum[p][c], out, rows);
        V::wide_store_first(out, sum[p][c], rows);
      }
    }
  }

  // The last activation rows, fewer than kPanelColumns.
  template <PanelTraits Traits>
  static void run_panels_rest(PanelArgs args, int columns) {
    for (; columns >= 4; columns -= 4, args.m += 4) run_panels<Traits, 4>(args);
    for (; columns >= 2; columns -= 2, args.m += 2) run_panels<Traits, 2>(args);
    if (columns == 1) run_panels<Traits, 1>(args);
  }
};

}  // namespace
}  // namespace optima::kernels
