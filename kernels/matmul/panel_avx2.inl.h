// The micro-kernel of AVX2 for few activation rows: a panel of 16 rows x up to kPanelColumns
// activation rows, straight from the panel's codes.
//
// Codes of 4 to 6 bits: sums of a block in int16, as in tile_avx2.inl.h. Bytes: vpmaddubsw wants
// one unsigned operand, so the sign of a weight moves to the activation, and pairs are widened at
// once, since two products nearly fill an int16.
#pragma once

#include "kernels/matmul/panel.inl.h"
#include "kernels/matmul/tile_avx2.inl.h"

namespace optima::kernels {
namespace {

struct PanelAvx2 : TileAvx2 {
  static constexpr int kPanelColumns = 4;

  static __m256i load(const uint8_t* p) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }

  // dot += codes of the quads J times the activations, in int16.
  template <PanelTraits Traits, int C, int... J>
  static void add_quads(const uint8_t* codes, const int8_t* const (&q)[C], __m256i (&dot)[C][2],
                        Indices<J...>) {
    const auto add = [&]<int Quad>(Indices<Quad>) __attribute__((always_inline)) {
      const __m256i w0 = panel_quad<V, Traits, Quad>(codes, 0);
      const __m256i w1 = panel_quad<V, Traits, Quad>(codes, 1);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        const __m256i a = broadcast4(q[c] + 4 * Quad);
        dot[c][0] = in_order(_mm256_add_epi16(dot[c][0], _mm256_maddubs_epi16(w0, a)));
        dot[c][1] = in_order(_mm256_add_epi16(dot[c][1], _mm256_maddubs_epi16(w1, a)));
      }
    };
    (add(Indices<J>{}), ...);
  }

  // -offset * Σ q, where the sums of products start.
  template <PanelTraits Traits, int C>
  static void start_dots(const int16_t* const (&pairs)[C], __m256i (&dot)[C][2]) {
    const __m256i offset = _mm256_set1_epi16(-panel_code_offset(Traits));
    for (int c = 0; c < C; ++c) {
      dot[c][0] = dot[c][1] = _mm256_mullo_epi16(broadcast4(pairs[c]), offset);
    }
  }

  // The integer products of a block: Σ (code - offset) q, as int32.
  template <PanelTraits Traits, int C>
  static void dot_codes(const uint8_t* codes, const int8_t* const (&q)[C],
                        const int16_t* const (&pairs)[C], __m256i (&dot)[C][2]) {
    start_dots<Traits, C>(pairs, dot);
    add_quads<Traits, C>(codes, q, dot, Indices<0, 4, 1, 5, 2, 6, 3, 7>{});
    const __m256i ones = _mm256_set1_epi16(1);
    for (int c = 0; c < C; ++c) {
      dot[c][0] = _mm256_madd_epi16(dot[c][0], ones);
      dot[c][1] = _mm256_madd_epi16(dot[c][1], ones);
    }
  }

  // The same, each half of the block times its factor.
  template <PanelTraits Traits, int C>
  static void dot_halves(const uint8_t* codes, const int8_t* const (&q)[C],
                         const int16_t* const (&pairs)[C], __m256i (&dot)[C][2]) {
    const uint8_t* factors = codes - panel_scale_bytes(Traits);
    __m256i part[C][2];
    start_dots<Traits, C>(pairs, part);
    add_quads<Traits, C>(codes, q, part, Indices<0, 1, 2, 3>{});
    for (int c = 0; c < C; ++c) {
      for (int half = 0; half < 2; ++half) {
        dot[c][half] = _mm256_madd_epi16(part[c][half], factor_pairs(factors + 8 * half));
      }
    }
    const int16_t* upper[C];
    for (int c = 0; c < C; ++c) upper[c] = pairs[c] + 2;
    start_dots<Traits, C>(upper, part);
    add_quads<Traits, C>(codes, q, part, Indices<4, 5, 6, 7>{});
    for (int c = 0; c < C; ++c) {
      for (int half = 0; half < 2; ++half) {
        dot[c][half] = _mm256_add_epi32(
            dot[c][half],
            _mm256_madd_epi16(part[c][half], factor_pairs(factors + kPanelRows + 8 * half)));
      }
    }
  }

  // Eight int8, each as two int16.
  static __m256i factor_pairs(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(bytes, bytes));
  }

  template <int C>
  static void dot_bytes(const uint8_t* codes, const int8_t* const (&q)[C], __m256i (&dot)[C][2]) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (int c = 0; c < C; ++c) dot[c][0] = dot[c][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i w =
            _mm256_xor_si256(load(codes + 64 * j + 32 * half), _mm256_set1_epi8(-128));
        const __m256i size = _mm256_abs_epi8(w);
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
          const __m256i a = _mm256_sign_epi8(broadcast4(q[c] + 4 * j), w);
          const __m256i part = _mm256_madd_epi16(_mm256_maddubs_epi16(size, a), ones);
          dot[c][half] = in_order(_mm256_add_epi32(dot[c][half], part));
        }
      }
    }
  }

  template <PanelTraits Traits, int C>
  static void add_panel_block(const PanelBlock& block, const Column (&x)[C], __m256 (&sum)[C][2]) {
    const uint8_t* codes = block.codes;
    const int64_t b = block.index;
    const int8_t* q[C];
    const int16_t* pairs[C];
    for (int c = 0; c < C; ++c) {
      q[c] = x[c].q + b * kActivationBlock;
      pairs[c] = x[c].pairs + 64 / panel_sub(Traits) * b;
    }
    __m256i dot[C][2];
    if constexpr (Traits.code_bits == 8) {
      dot_bytes<C>(codes, q, dot);
    } else if constexpr (Traits.factors == PanelFactors::of_halves) {
      dot_halves<Traits, C>(codes, q, pairs, dot);
    } else {
      dot_codes<Traits, C>(codes, q, pairs, dot);
    }
    for (int half = 0; half < 2; ++half) {
      __m256 d;
      __m256 constant;
      panel_scales<V, Traits>(block.group, codes - panel_scale_bytes(Traits), half, d, constant);
      for (int c = 0; c < C; ++c) {
        const __m256 step = _mm256_mul_ps(d, _mm256_broadcast_ss(x[c].scale + b));
        sum[c][half] = scaled(dot[c][half], step, sum[c][half]);
        if constexpr (Traits.has_min) {
          sum[c][half] =
              _mm256_fmadd_ps(constant, _mm256_broadcast_ss(x[c].sum_x + b), sum[c][half]);
        }
      }
    }
  }

  template <PanelTraits Traits, int C>
  [[gnu::noinline]] static void run_panels(const PanelArgs& args) {  // shared by many types
    constexpr int kPanels = panels_at_most(C);
    const int panels = kPanels == 1 ? 1 : args.panels;
    Column x[C];
    for (int c = 0; c < C; ++c)
      x[c] = column<panel_sub(Traits)>(*args.x, args.first_block, args.m + c);
    __m256 sum[kPanels][C][2];
    for (int p = 0; p < panels; ++p)
      for (int c = 0; c < C; ++c) sum[p][c][0] = sum[p][c][1] = _mm256_setzero_ps();
    for_panel_blocks<Traits, C>(
        args, [&](const PanelBlock& block, int p)
                  __attribute__((always_inline)) { add_panel_block<Traits, C>(block, x, sum[p]); });
    for (int p = 0; p < panels; ++p) {
      const auto rows = static_cast<int>(args.rows) - kPanelRows * p;
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        float* out = args.out + kPanelRows * p + (args.m + c) * args.out_stride;
        store(out, sum[p][c][0], rows, args.accumulate);
        store(out + 8, sum[p][c][1], rows - 8, args.accumulate);
      }
    }
  }

  template <PanelTraits Traits>
  static void run_panels_rest(const PanelArgs& args, int columns) {
    if (columns == 1) run_panels<Traits, 1>(args);
    if (columns == 2) run_panels<Traits, 2>(args);
    if (columns == 3) run_panels<Traits, 3>(args);
  }
};

}  // namespace
}  // namespace optima::kernels
