// F32, F16 and BF16 weights times few rows of fp32 activations: weights are read once, each vector
// of them meets all activation rows while it is in a register, and sums run along k. words.inl.h
// has many rows.
#pragma once

#include <stdint.h>

#include "kernels/half.h"
#include "kernels/matmul/gemv.inl.h"
#include "kernels/matmul/matmul.h"

namespace optima::kernels {
namespace {

template <typename V>
struct Float32 {
  static constexpr int kBytes = 4;
  static typename V::Floats load(const uint8_t* p) {
    return V::load_floats(reinterpret_cast<const float*>(p));
  }
  static float one(const uint8_t* p) { return float_from_bits(load_u32(p)); }
};

template <typename V>
struct Float16 {
  static constexpr int kBytes = 2;
  static typename V::Floats load(const uint8_t* p) { return V::halves(p); }
  static float one(const uint8_t* p) { return V::half(p); }
};

template <typename V>
struct BFloat16 {
  static constexpr int kBytes = 2;
  static typename V::Floats load(const uint8_t* p) { return V::bfloats(p); }
  static float one(const uint8_t* p) { return bf16_to_float(load_u16(p)); }
};

template <typename V, typename F, int M>
inline void float_dot_row(const uint8_t* row, const MatmulArgs& args, float* out) {
  constexpr int kChains = 4;
  typename V::Floats sum[M][kChains];
  for (int m = 0; m < M; ++m) {
    for (int chain = 0; chain < kChains; ++chain) sum[m][chain] = V::zero();
  }
  const int64_t k = args.k;
  int64_t i = 0;
  for (; i + 8 * kChains <= k; i += 8 * kChains) {
    for (int line = 0; line < 8 * kChains * F::kBytes; line += 64) {
      __builtin_prefetch(row + i * F::kBytes + kPrefetchBytes + line);
    }
    for (int chain = 0; chain < kChains; ++chain) {
      const int64_t at = i + 8 * chain;
      const typename V::Floats w = F::load(row + at * F::kBytes);
      for (int m = 0; m < M; ++m) {
        sum[m][chain] = V::fma(w, V::load_floats(args.x + m * k + at), sum[m][chain]);
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    const typename V::Floats lanes =
        V::add(V::add(sum[m][0], sum[m][1]), V::add(sum[m][2], sum[m][3]));
    float total = V::sum(lanes);
    for (int64_t j = i; j < k; ++j) total += F::one(row + j * F::kBytes) * args.x[m * k + j];
    out[m * args.out_stride] = total;
  }
}

template <typename V, typename F, int M>
void float_gemv_rows(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  const auto* weights = static_cast<const uint8_t*>(args.weights);
  for (int64_t n = n_begin; n < n_end; ++n) {
    float_dot_row<V, F, M>(weights + n * args.k * F::kBytes, args, args.out + n);
  }
}

// R weight rows times C activation rows: R * C sums in registers, so that a vector of either is
// loaded once for several products.
constexpr int kDotRows = 3;
constexpr int kDotColumns = 4;

template <typename V, typename F, int R, int C>
struct DotTile {
  const uint8_t* row[R];
  const float* x[C];
  typename V::Floats sum[R][C];

  inline void add(int64_t i) {
    typename V::Floats w[R];
    for (int r = 0; r < R; ++r) w[r] = F::load(row[r] + i * F::kBytes);
    for (int c = 0; c < C; ++c) {
      const typename V::Floats a = V::load_floats(x[c] + i);
      for (int r = 0; r < R; ++r) sum[r][c] = V::fma(w[r], a, sum[r][c]);
    }
  }
};

template <typename V, typename F, int R, int C>
void float_dot_tile(const MatmulArgs& args, const uint8_t* weights, const float* x, float* out) {
  constexpr int kSteps = 4;
  const int64_t k = args.k;
  DotTile<V, F, R, C> tile;
  for (int r = 0; r < R; ++r) tile.row[r] = weights + r * k * F::kBytes;
  for (int c = 0; c < C; ++c) tile.x[c] = x + c * k;
  for (auto& sums : tile.sum) {
    for (auto& sum : sums) sum = V::zero();
  }
  int64_t i = 0;
  for (; i + 8 * kSteps <= k; i += 8 * kSteps) {
    for (int line = 0; line < 8 * kSteps * F::kBytes; line += 64) {  // of the R rows to come
      for (const uint8_t* row : tile.row) __builtin_prefetch(row + (R * k + i) * F::kBytes + line);
    }
    for (int step = 0; step < kSteps; ++step) tile.add(i + 8 * step);
  }
  for (; i + 8 <= k; i += 8) tile.add(i);
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      float total = V::sum(tile.sum[r][c]);
      for (int64_t j = i; j < k; ++j) total += F::one(tile.row[r] + j * F::kBytes) * tile.x[c][j];
      out[c * args.out_stride + r] = total;
    }
  }
}

// R weight rows times all activation rows, in pieces of about equal size.
template <typename V, typename F, int R>
void float_dot_rows(const MatmulArgs& args, int64_t n) {
  const uint8_t* weights = static_cast<const uint8_t*>(args.weights) + n * args.k * F::kBytes;
  int64_t m = 0;
  for (int64_t pieces = (args.m + kDotColumns - 1) / kDotColumns; pieces > 0; --pieces) {
    const float* x = args.x + m * args.k;
    float* out = args.out + m * args.out_stride + n;
    const int64_t columns = (args.m - m + pieces - 1) / pieces;
    if (columns == kDotColumns) float_dot_tile<V, F, R, kDotColumns>(args, weights, x, out);
    if (columns == 3) float_dot_tile<V, F, R, 3>(args, weights, x, out);
    if (columns == 2) float_dot_tile<V, F, R, 2>(args, weights, x, out);
    m += columns;
  }
}

// Rows whose products have the same bits however many there are (RowSums::alike).
constexpr int kFloatGemvMaxRows = 3;
// From here on unpacking a tile (words.inl.h) pays.
constexpr int kFloatFewRows = 16;

// Up to kFloatFewRows activation rows.
template <typename V, typename F>
void float_few(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  switch (args.m) {
    case 1:
      return float_gemv_rows<V, F, 1>(args, n_begin, n_end);
    case 2:
      return float_gemv_rows<V, F, 2>(args, n_begin, n_end);
    case kFloatGemvMaxRows:
      return float_gemv_rows<V, F, kFloatGemvMaxRows>(args, n_begin, n_end);
    default:
      break;
  }
  int64_t n = n_begin;
  for (; n + kDotRows <= n_end; n += kDotRows) float_dot_rows<V, F, kDotRows>(args, n);
  for (; n < n_end; ++n) float_dot_rows<V, F, 1>(args, n);
}

}  // namespace
}  // namespace optima::kernels
