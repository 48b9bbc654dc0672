// Few activation rows: weights stream once from memory, row by row in the file's layout. Up to
// three activation rows share the unpacking of a weight row; more go over it again while it is in
// the cache, which costs less than making tiles of it (gemm.inl.h) until there are more than six.
//
// Reading weights is the limit, so the work per byte is kept small: a group of 256 weights costs
// one vector of scales, and the constant terms (offset and minimum) are eight blocks a fused
// multiply-add. Every cache line is prefetched kPrefetchBytes ahead: hardware prefetchers stop at
// page borders and reach about 60 % of the bandwidth alone.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/matmul/matmul.h"
#include "kernels/quant/unpack.inl.h"

namespace optima::kernels {
namespace {

constexpr int kGemvMaxRows = 6;
constexpr int kPrefetchBytes = 4096;
constexpr int kGroupBlocks = 8;
constexpr int kGroupValues = 256;

template <int... I>
struct Indices {};

// One quantised activation row, with its sums in the form that the constant terms need.
struct GemvRow {
  const int8_t* q;
  const int8_t* paired;  // q of whole groups in the order of Format::pair
  const float* scale;
  const float* sum_x;
  const float* sum_x16;
  const float* offset_sum;  // [k / 32] -offset * Σ q
  const int16_t* sum16;     // [k / 16] Σ q
};

// Bytes of GemvRow's own arrays for one row of k values.
constexpr int64_t prepared_row_bytes(int64_t k) {
  const int64_t blocks = k / kActivationBlock;
  return k + blocks * static_cast<int64_t>(sizeof(float) + 2 * sizeof(int16_t));
}

// For each pair of blocks I and I + 4 of a group: their lower 16 values, their upper 16 values.
template <typename V>
void pair_activations(const int8_t* q, int64_t blocks, int8_t* out) {
  for (int64_t b = 0; b + kGroupBlocks <= blocks; b += kGroupBlocks) {
    for (int i = 0; i < 4; ++i) {
      const int8_t* first = q + (b + i) * kActivationBlock;
      const int8_t* second = first + 4 * kActivationBlock;
      int8_t* to = out + b * kActivationBlock + 64 * i;
      V::store(to, V::load_pair(first, second));
      V::store(to + 32, V::load_pair(first + 16, second + 16));
    }
  }
}

template <typename V, typename F>
GemvRow prepare_row(const QuantisedRows& x, int64_t m, char* scratch) {
  const int64_t blocks = x.k_padded / kActivationBlock;
  auto* offset_sum = reinterpret_cast<float*>(scratch);
  auto* sum16 = reinterpret_cast<int16_t*>(offset_sum + blocks);
  auto* paired = reinterpret_cast<int8_t*>(sum16 + 2 * blocks);
  const int16_t* pairs = x.pairs + m * blocks * 2;
  const int16_t* pairs16 = x.pairs16 + m * blocks * 4;
  if constexpr (F::kSub == 32) {
    for (int64_t b = 0; b < blocks; ++b) {
      offset_sum[b] = static_cast<float>(-F::kOffset * (pairs[2 * b] + pairs[2 * b + 1]));
    }
  } else {
    for (int64_t b = 0; b < 2 * blocks; ++b) {
      sum16[b] = static_cast<int16_t>(pairs16[2 * b] + pairs16[2 * b + 1]);
    }
  }
  if constexpr (F::kPairs) pair_activations<V>(x.q + m * x.k_padded, blocks, paired);
  return {x.q + m * x.k_padded,
          paired,
          x.scale + m * blocks,
          x.sum_x + m * blocks,
          x.sum_x16 + m * blocks * 2,
          offset_sum,
          sum16};
}

template <typename V, int M>
struct GemvSums {
  typename V::Floats dot[M][2];  // two chains each, to hide the latency of the addition
  typename V::Floats constant[M];
};

template <typename V, typename F, int I>
typename V::Floats dot_block(typename V::Bytes codes, const int8_t* q,
                             [[maybe_unused]] typename V::Bytes words) {
  if constexpr (F::kSub == 16) {
    return V::dot_scaled(codes, V::load(q), V::template spread_words<I>(words));
  } else if constexpr (F::kSigned8) {
    return V::dot_signed(codes, V::load(q));
  } else {
    return V::dot(codes, V::load(q));
  }
}

template <typename V, typename F, int M, int... I>
inline void add_blocks(const uint8_t* group, const GemvRow (&x)[M], int64_t block,
                       const float (*step)[kGroupBlocks], const typename V::Bytes (&words)[2],
                       GemvSums<V, M>& sums, Indices<I...>) {
  const auto add = [&]<int J>(Indices<J>) __attribute__((always_inline)) {
    const typename V::Bytes codes = F::template codes<J>(group);
    for (int m = 0; m < M; ++m) {
      const typename V::Floats dot =
          dot_block<V, F, J>(codes, x[m].q + (block + J) * kActivationBlock, words[J / 4]);
      sums.dot[m][J % 2] = V::fma(dot, V::load_broadcast(step[m] + J), sums.dot[m][J % 2]);
    }
  };
  (add(Indices<I>{}), ...);
}

// The same for a whole group of nibbles, two blocks at a time.
template <typename V, typename F, int M, int... I>
inline void add_pairs(const uint8_t* group, const GemvRow (&x)[M], int64_t block,
                      const typename V::Floats (&step)[M], GemvSums<V, M>& sums, Indices<I...>) {
  const auto add = [&]<int J>(Indices<J>) __attribute__((always_inline)) {
    typename V::Bytes low;
    typename V::Bytes high;
    F::template pair<J>(group, low, high);
    for (int m = 0; m < M; ++m) {
      const int8_t* q = x[m].paired + block * kActivationBlock + 64 * J;
      typename V::Floats dot;
      if constexpr (F::kSigned8) {
        dot = V::dot_signed_pair(low, V::load(q), high, V::load(q + 32));
      } else {
        dot = V::dot_pair(low, V::load(q), high, V::load(q + 32));
      }
      sums.dot[m][J % 2] = V::fma(dot, V::template spread<J>(step[m]), sums.dot[m][J % 2]);
    }
  };
  (add(Indices<I>{}), ...);
}

// The constant terms of N blocks of 32, and the steps d * scale of the blocks.
template <typename V, typename F, int M, int N>
inline void add_constants(const uint8_t* group, const GemvRow (&x)[M], int64_t block,
                          typename V::Floats (&step)[M], GemvSums<V, M>& sums) {
  typename V::Floats d;
  [[maybe_unused]] typename V::Floats c;
  F::template scales<N>(group, d, c);
  for (int m = 0; m < M; ++m) {
    step[m] = V::mul(d, V::template load_floats<N>(x[m].scale + block));
    if constexpr (F::kOffset != 0) {
      sums.constant[m] =
          V::fma(step[m], V::template load_floats<N>(x[m].offset_sum + block), sums.constant[m]);
    }
    if constexpr (F::kHasMin) {
      sums.constant[m] =
          V::fma(c, V::template load_floats<N>(x[m].sum_x + block), sums.constant[m]);
    }
  }
}

// The same for super-blocks of sixteen sub-blocks; they are always whole.
template <typename V, typename F, int M>
inline void add_constants16(const uint8_t* group, const GemvRow (&x)[M], int64_t block,
                            const uint64_t (&factors)[2], typename V::Floats (&step)[M],
                            GemvSums<V, M>& sums) {
  const typename V::Floats d = V::set(F::scale(group));
  const typename V::Bytes words = V::words(factors[0], factors[1]);
  for (int m = 0; m < M; ++m) {
    step[m] = V::mul(d, V::load_floats(x[m].scale + block));
    const typename V::Floats sum = V::dot_shorts(words, V::load(x[m].sum16 + 2 * block));
    sums.constant[m] = V::fma(V::mul(step[m], sum), V::set(-F::kOffset), sums.constant[m]);
    if constexpr (F::kHasMin) {
      typename V::Floats c[2];
      F::mins(group, c);
      for (int i = 0; i < 2; ++i) {
        const typename V::Floats sum_x = V::load_floats(x[m].sum_x16 + 2 * block + 8 * i);
        sums.constant[m] = V::fma(c[i], sum_x, sums.constant[m]);
      }
    }
  }
}

template <int N>
struct FirstIndices;
template <>
struct FirstIndices<8> : Indices<0, 1, 2, 3, 4, 5, 6, 7> {};
template <>
struct FirstIndices<4> : Indices<0, 1, 2, 3> {};
template <>
struct FirstIndices<2> : Indices<0, 1> {};
template <>
struct FirstIndices<1> : Indices<0> {};

// N blocks of a row, from `block` on, which `group` points to.
template <typename V, typename F, int M, int N>
inline void add_group(const uint8_t* group, const GemvRow (&x)[M], int64_t block,
                      GemvSums<V, M>& sums) {
  for (int line = 0; line < N * F::kBytes / kGroupBlocks; line += 64) {
    __builtin_prefetch(group + kPrefetchBytes + line);
  }
  typename V::Floats steps[M];
  typename V::Bytes words[2] = {};
  if constexpr (F::kSub == 16) {
    uint64_t factors[2];
    F::factors(group, factors);
    add_constants16<V, F, M>(group, x, block, factors, steps, sums);
    for (int i = 0; i < 2; ++i) words[i] = V::words_twice(factors[i]);
  } else {
    add_constants<V, F, M, N>(group, x, block, steps, sums);
  }
  if constexpr (F::kPairs && N == 8) {
    add_pairs<V, F, M>(group, x, block, steps, sums, FirstIndices<4>{});
  } else {
    float step[M][kGroupBlocks];
    for (int m = 0; m < M; ++m) V::store_floats(step[m], steps[m]);
    add_blocks<V, F, M>(group, x, block, step, words, sums, FirstIndices<N>{});
  }
}

template <typename V, typename F, int M>
inline void dot_row(const uint8_t* row, const GemvRow (&x)[M], int64_t blocks, float* out,
                    int64_t out_stride) {
  GemvSums<V, M> sums;
  for (int m = 0; m < M; ++m) {
    sums.dot[m][0] = sums.dot[m][1] = sums.constant[m] = V::zero();
  }
  int64_t block = 0;
  for (; block + 8 <= blocks; block += 8, row += F::kBytes) {
    add_group<V, F, M, 8>(row, x, block, sums);
  }
  if constexpr (!F::kWhole) {
    const int64_t rest = blocks - block;
    if ((rest & 4) != 0) {
      add_group<V, F, M, 4>(row, x, block, sums);
      block += 4;
      row += 4 * F::kBlockBytes;
    }
    if ((rest & 2) != 0) {
      add_group<V, F, M, 2>(row, x, block, sums);
      block += 2;
      row += 2 * F::kBlockBytes;
    }
    if ((rest & 1) != 0) add_group<V, F, M, 1>(row, x, block, sums);
  }
  for (int m = 0; m < M; ++m) {
    const typename V::Floats dot = V::add(sums.dot[m][0], sums.dot[m][1]);
    out[m * out_stride] = V::sum(V::add(dot, sums.constant[m]));
  }
}

template <typename V, typename F, int M>
void gemv_rows(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  const int64_t blocks = args.k / kActivationBlock;
  GemvRow x[M];
  for (int m = 0; m < M; ++m) {
    x[m] = prepare_row<V, F>(args.xq, m,
                             static_cast<char*>(args.scratch) + m * prepared_row_bytes(args.k));
  }
  const int64_t stride = blocks / kGroupBlocks * F::kBytes +
                         blocks % kGroupBlocks * static_cast<int64_t>(F::kBlockBytes);
  const auto* row = static_cast<const uint8_t*>(args.weights) + n_begin * stride;
  for (int64_t n = n_begin; n < n_end; ++n, row += stride) {
    dot_row<V, F, M>(row, x, blocks, args.out + n, args.out_stride);
  }
}

// More than three activation rows, three at a time for each weight row.
template <typename V, typename F>
void gemv_groups(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  const int64_t blocks = args.k / kActivationBlock;
  GemvRow x[kGemvMaxRows];
  for (int64_t m = 0; m < args.m; ++m) {
    x[m] = prepare_row<V, F>(args.xq, m,
                             static_cast<char*>(args.scratch) + m * prepared_row_bytes(args.k));
  }
  const int64_t stride = blocks / kGroupBlocks * F::kBytes +
                         blocks % kGroupBlocks * static_cast<int64_t>(F::kBlockBytes);
  const auto* row = static_cast<const uint8_t*>(args.weights) + n_begin * stride;
  for (int64_t n = n_begin; n < n_end; ++n, row += stride) {
    float* out = args.out + n;
    int64_t m = 0;
    for (; m + 3 <= args.m; m += 3, out += 3 * args.out_stride) {
      const GemvRow group[3] = {x[m], x[m + 1], x[m + 2]};
      dot_row<V, F, 3>(row, group, blocks, out, args.out_stride);
    }
    for (; m < args.m; ++m, out += args.out_stride) {
      const GemvRow one[1] = {x[m]};
      dot_row<V, F, 1>(row, one, blocks, out, args.out_stride);
    }
  }
}

template <typename V, WeightType T>
void gemv(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  using F = Format<V, T>;
  switch (args.m) {
    case 1:
      return gemv_rows<V, F, 1>(args, n_begin, n_end);
    case 2:
      return gemv_rows<V, F, 2>(args, n_begin, n_end);
    case 3:
      return gemv_rows<V, F, 3>(args, n_begin, n_end);
    default:
      return gemv_groups<V, F>(args, n_begin, n_end);
  }
}

}  // namespace
}  // namespace optima::kernels
