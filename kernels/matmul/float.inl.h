// F32, F16 and BF16 weights times fp32 activations.
#pragma once

#include <stdint.h>

#include "kernels/half.h"
#include "kernels/matmul/gemm.inl.h"
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

constexpr int kFloatGemvMaxRows = 3;

template <typename V, typename F>
void float_gemv(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  switch (args.m) {
    case 1:
      return float_gemv_rows<V, F, 1>(args, n_begin, n_end);
    case 2:
      return float_gemv_rows<V, F, 2>(args, n_begin, n_end);
    default:
      return float_gemv_rows<V, F, 3>(args, n_begin, n_end);
  }
}

constexpr int64_t kFloatStretch = 256;  // k of a tile: 16 KB
constexpr int kFloatColumns = 4;

// tile[k][16 rows]; rows that do not exist repeat the last one.
template <typename V, typename F>
void unpack_floats(const uint8_t* weights, int64_t stride, int rows, int64_t count, float* tile) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* row[8];
    for (int r = 0; r < 8; ++r) {
      const int index = 8 * half + r < rows ? 8 * half + r : rows - 1;
      row[r] = weights + index * stride;
    }
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
      typename V::Bytes in[8];
      typename V::Bytes out[8];
      for (int r = 0; r < 8; ++r) in[r] = V::float_bits(F::load(row[r] + i * F::kBytes));
      V::transpose(in, out);
      for (int j = 0; j < 8; ++j) V::store(tile + (i + j) * kPanelRows + 8 * half, out[j]);
    }
    for (; i < count; ++i) {
      for (int r = 0; r < 8; ++r) {
        tile[i * kPanelRows + 8 * half + r] = F::one(row[r] + i * F::kBytes);
      }
    }
  }
}

// One tile times C activation rows, added to or written over `out`.
template <typename V, int C>
inline void float_tile(const float* tile, const float* x, int64_t x_stride, int64_t count,
                       const TileArgs& to) {
  typename V::Floats sum[C][2];
  for (int c = 0; c < C; ++c) sum[c][0] = sum[c][1] = V::zero();
  for (int64_t i = 0; i < count; ++i) {
    const typename V::Floats w0 = V::load_floats(tile + i * kPanelRows);
    const typename V::Floats w1 = V::load_floats(tile + i * kPanelRows + 8);
    for (int c = 0; c < C; ++c) {
      const typename V::Floats a = V::load_broadcast(x + c * x_stride + i);
      sum[c][0] = V::fma(w0, a, sum[c][0]);
      sum[c][1] = V::fma(w1, a, sum[c][1]);
    }
  }
  for (int c = 0; c < C; ++c) {
    float values[kPanelRows];
    V::store_floats(values, sum[c][0]);
    V::store_floats(values + 8, sum[c][1]);
    float* out = to.out + c * to.out_stride;
    for (int r = 0; r < to.rows; ++r) out[r] = to.accumulate != 0 ? out[r] + values[r] : values[r];
  }
}

template <typename V, typename F>
void float_gemm(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  auto* tile = reinterpret_cast<float*>(tiles_in(args.scratch));
  const int64_t stride = args.k * F::kBytes;
  for (int64_t n = n_begin; n < n_end; n += kPanelRows) {
    const auto rows = static_cast<int>(n_end - n < kPanelRows ? n_end - n : kPanelRows);
    const auto* weights = static_cast<const uint8_t*>(args.weights) + n * stride;
    for (int64_t k = 0; k < args.k; k += kFloatStretch) {
      const int64_t count = args.k - k < kFloatStretch ? args.k - k : kFloatStretch;
      unpack_floats<V, F>(weights + k * F::kBytes, stride, rows, count, tile);
      TileArgs to = {};
      to.out_stride = args.out_stride;
      to.rows = rows;
      to.accumulate = k == 0 ? 0 : 1;
      int64_t m = 0;
      for (; m + kFloatColumns <= args.m; m += kFloatColumns) {
        to.out = args.out + m * args.out_stride + n;
        float_tile<V, kFloatColumns>(tile, args.x + m * args.k + k, args.k, count, to);
      }
      for (; m < args.m; ++m) {
        to.out = args.out + m * args.out_stride + n;
        float_tile<V, 1>(tile, args.x + m * args.k + k, args.k, count, to);
      }
    }
  }
}

}  // namespace
}  // namespace optima::kernels
