// The micro-kernel of AVX2 without VNNI: 16 weight rows x up to 3 activation rows, all sums in
// registers (6 of int16, 6 of fp32, 2 of weights, 1 of activations, 1 temporary).
//
// vpmaddubsw adds pairs of u8 x s8 products in 16 bits and saturates, so codes must stay below 64;
// its results are added in 16 bits with wrap-around over a whole block. That is exact: a lane
// starts at -offset * Σ q, hence ends at Σ (code - offset) q over 16 (block of 32) or 8 (block of
// 16) values, at most 16 * 16 * 127 or 8 * 32 * 127, which fits; what happens on the way does not
// matter. Codes of 8 bits are split into two planes of 4 bits: 16 * (high - 8) + low.
#pragma once

#include "kernels/matmul/gemm.inl.h"
#include "kernels/vec/avx2.h"

namespace optima::kernels {
namespace {

struct TileAvx2 {
  using V = Avx2;
  static constexpr bool kWideCodes = false;  // 8-bit codes need planes
  static constexpr bool kSignedCodes = false;
  static constexpr int kColumns = 3;
  static constexpr int kPanels = 1;

  // Pointers of one activation row into the stretch.
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

  static __m256i broadcast4(const void* p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
  }

  // Hides the value from the compiler, which would otherwise rearrange the sums of a block into a
  // tree that needs five times the registers there are.
  static __m256i in_order(__m256i value) {
    __asm__("" : "+x"(value));
    return value;
  }

  // acc += codes[first, last) of the tile times the activations.
  template <int C>
  static void multiply(const TileBlock& tile, const int8_t* const q[C], int first, int last,
                       __m256i (&acc)[C][2]) {
#pragma GCC unroll 8
    for (int j = first; j < last; ++j) {
      const __m256i w0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.codes[j]));
      const __m256i w1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.codes[j] + 32));
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        const __m256i a = broadcast4(q[c] + 4 * j);
        acc[c][0] = in_order(_mm256_add_epi16(acc[c][0], _mm256_maddubs_epi16(w0, a)));
        acc[c][1] = in_order(_mm256_add_epi16(acc[c][1], _mm256_maddubs_epi16(w1, a)));
      }
    }
  }

  static __m256 scaled(__m256i ints, __m256 step, __m256 sum) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(ints), step, sum);
  }

  template <TileTraits Traits, int C>
  static void add_block(const TileArgs& args, const Column (&x)[C], int64_t b, __m256i offset,
                        __m256 (&sum)[C][2]) {
    constexpr int kSums = 32 / Traits.sub;
    const TileBlock& tile = args.tile[b];
    const int8_t* q[C];
    for (int c = 0; c < C; ++c) q[c] = x[c].q + b * kActivationBlock;
    __m256i dot[C][2];
    if constexpr (Traits.sub == 32) {
      for (int c = 0; c < C; ++c) {
        const __m256i start = _mm256_mullo_epi16(broadcast4(x[c].pairs + 2 * b), offset);
        dot[c][0] = Traits.planes ? _mm256_setzero_si256() : start;
        dot[c][1] = start;
      }
      multiply<C>(tile, q, 0, 8, dot);
      const __m256i ones = _mm256_set1_epi16(1);
      for (int c = 0; c < C; ++c) {
        dot[c][0] = _mm256_madd_epi16(dot[c][0], ones);
        dot[c][1] = _mm256_madd_epi16(dot[c][1], Traits.planes ? _mm256_set1_epi16(16) : ones);
      }
    } else {
      __m256i half[C][2];
      for (int h = 0; h < 2; ++h) {
        for (int c = 0; c < C; ++c) {
          half[c][0] = half[c][1] =
              _mm256_mullo_epi16(broadcast4(x[c].pairs + 4 * b + 2 * h), offset);
        }
        multiply<C>(tile, q, 4 * h, 4 * h + 4, half);
        for (int r = 0; r < 2; ++r) {
          const __m256i factor =
              _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.factor[h][8 * r]));
          for (int c = 0; c < C; ++c) {
            const __m256i part = _mm256_madd_epi16(half[c][r], factor);
            dot[c][r] = h == 0 ? part : _mm256_add_epi32(dot[c][r], part);
          }
        }
      }
    }
    for (int c = 0; c < C; ++c) {
      const __m256 scale = _mm256_broadcast_ss(x[c].scale + b);
      if constexpr (Traits.planes) {
        const __m256 step = _mm256_mul_ps(_mm256_load_ps(tile.d[0]), scale);
        sum[c][0] = scaled(_mm256_add_epi32(dot[c][0], dot[c][1]), step, sum[c][0]);
        continue;
      }
      for (int r = 0; r < 2; ++r) {
        const __m256 step = _mm256_mul_ps(_mm256_load_ps(tile.d[0] + 8 * r), scale);
        sum[c][r] = scaled(dot[c][r], step, sum[c][r]);
        if constexpr (Traits.has_min) {
          for (int h = 0; h < kSums; ++h) {
            sum[c][r] = _mm256_fmadd_ps(_mm256_load_ps(tile.c[h] + 8 * r),
                                        _mm256_broadcast_ss(x[c].sum_x + kSums * b + h), sum[c][r]);
          }
        }
      }
    }
  }

  // The first `count` lanes of one vector of results, all of them where count >= 8.
  static void store(float* out, __m256 value, int count, int accumulate) {
    if (count >= 8) {
      if (accumulate != 0) value = _mm256_add_ps(value, _mm256_loadu_ps(out));
      _mm256_storeu_ps(out, value);
      return;
    }
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane);
    if (accumulate != 0) value = _mm256_add_ps(value, _mm256_maskload_ps(out, mask));
    _mm256_maskstore_ps(out, mask, value);
  }

  template <TileTraits Traits, int C>
  [[gnu::noinline]] static void run(const TileArgs& args) {  // shared by many types
    Column x[C];
    for (int c = 0; c < C; ++c) x[c] = column<Traits.sub>(*args.x, args.first_block, args.m + c);
    __m256 sum[C][2];
    for (int c = 0; c < C; ++c) sum[c][0] = sum[c][1] = _mm256_setzero_ps();
    const __m256i offset =
        _mm256_set1_epi16(static_cast<int16_t>(Traits.planes ? -args.offset / 16 : -args.offset));
    for (int64_t b = 0; b < args.blocks; ++b) add_block<Traits, C>(args, x, b, offset, sum);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      float* out = args.out + (args.m + c) * args.out_stride;
      store(out, sum[c][0], args.rows, args.accumulate);
      if (!Traits.planes) store(out + 8, sum[c][1], args.rows - 8, args.accumulate);
    }
  }

  template <TileTraits Traits>
  static void run_rest(const TileArgs& args, int columns) {
    if (columns == 1) run<Traits, 1>(args);
    if (columns == 2) run<Traits, 2>(args);
  }
};

}  // namespace
}  // namespace optima::kernels
