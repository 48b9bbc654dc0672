// Few activation rows (m <= 3): weights stream once from memory, row by row in the file's layout.
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

constexpr int kGemvMaxRows = 3;
constexpr int kPrefetchBytes = 4096;
constexpr int kGroupBlocks = 8;
constexpr int kGroupValues = 256;

template <int... I>
struct Indices {};
using GroupIndices = Indices<0, 1, 2, 3, 4, 5, 6, 7>;

// One quantised activation row, with its sums in the form that the constant terms need.
struct GemvRow {
  const int8_t* q;
  const float* scale;
  const float* sum_x;
  const float* sum_x16;
  const float* offset_sum;  // [k / 32] -offset * Σ q
  const int16_t* sum16;     // [k / 16] Σ q
};

// Bytes of GemvRow's own arrays for kGemvMaxRows rows.
inline constexpr int64_t gemv_scratch_bytes(int64_t k) {
  return kGemvMaxRows * (k / 32 * 4 + k / 16 * 2) + 64;
}

GemvRow prepare_row(const QuantisedRows& x, int64_t m, int offset, char* scratch) {
  const int64_t blocks = x.k_padded / kActivationBlock;
  auto* offset_sum = reinterpret_cast<float*>(scratch);
  auto* sum16 = reinterpret_cast<int16_t*>(offset_sum + blocks);
  const int16_t* pairs = x.pairs + m * blocks * 2;
  const int16_t* pairs16 = x.pairs16 + m * blocks * 4;
  for (int64_t b = 0; b < blocks; ++b) {
    offset_sum[b] = static_cast<float>(-offset * (pairs[2 * b] + pairs[2 * b + 1]));
  }
  for (int64_t b = 0; b < 2 * blocks; ++b) {
    sum16[b] = static_cast<int16_t>(pairs16[2 * b] + pairs16[2 * b + 1]);
  }
  return {x.q + m * x.k_padded,       x.scale + m * blocks, x.sum_x + m * blocks,
          x.sum_x16 + m * blocks * 2, offset_sum,           sum16};
}

template <typename V, int M>
struct GemvSums {
  typename V::Floats dot[M][2];  // two chains each, to hide the latency of the addition
  typename V::Floats constant[M];
};

// Loads eight floats of which `count` exist; a full group has them all.
template <typename V, bool Full>
typename V::Floats load_blocks(const float* p, int count) {
  if constexpr (Full) return V::load_floats(p);
  return V::load_floats(p, count);
}

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

template <typename V, typename F, int M, bool Full, int... I>
inline void add_blocks(const uint8_t* group, const GemvRow (&x)[M], int64_t block, int count,
                       const float (*step)[kGroupBlocks], const typename V::Bytes (&words)[2],
                       GemvSums<V, M>& sums, Indices<I...>) {
  const auto add = [&]<int J>(Indices<J>) __attribute__((always_inline)) {
    if (!Full && J >= count) return;
    const typename V::Bytes codes = F::template codes<J>(group);
    for (int m = 0; m < M; ++m) {
      const typename V::Floats dot =
          dot_block<V, F, J>(codes, x[m].q + (block + J) * kActivationBlock, words[J / 4]);
      sums.dot[m][J % 2] = V::fma(dot, V::load_broadcast(step[m] + J), sums.dot[m][J % 2]);
    }
  };
  (add(Indices<I>{}), ...);
}

// The constant terms of a group of blocks of 32, and the steps d * scale of its blocks.
template <typename V, typename F, int M, bool Full>
inline void add_constants(const uint8_t* group, const GemvRow (&x)[M], int64_t block, int count,
                          float (*step)[kGroupBlocks], GemvSums<V, M>& sums) {
  const typename V::Floats d = F::scales(group);
  for (int m = 0; m < M; ++m) {
    const typename V::Floats ds = V::mul(d, load_blocks<V, Full>(x[m].scale + block, count));
    V::store_floats(step[m], ds);
    if constexpr (F::kOffset != 0) {
      sums.constant[m] =
          V::fma(ds, load_blocks<V, Full>(x[m].offset_sum + block, count), sums.constant[m]);
    }
    if constexpr (F::kHasMin) {
      sums.constant[m] =
          V::fma(F::mins(group), load_blocks<V, Full>(x[m].sum_x + block, count), sums.constant[m]);
    }
  }
}

// The same for super-blocks of sixteen sub-blocks; they are always full.
template <typename V, typename F, int M>
inline void add_constants16(const uint8_t* group, const GemvRow (&x)[M], int64_t block,
                            float (*step)[kGroupBlocks], const int8_t* sub_scales,
                            GemvSums<V, M>& sums) {
  const typename V::Floats d = F::scales(group);
  const typename V::Bytes words = V::words(sub_scales);
  for (int m = 0; m < M; ++m) {
    const typename V::Floats ds = V::mul(d, V::load_floats(x[m].scale + block));
    V::store_floats(step[m], ds);
    const typename V::Floats sum = V::dot_shorts(words, V::load(x[m].sum16 + 2 * block));
    sums.constant[m] = V::fma(V::mul(ds, sum), V::set(-F::kOffset), sums.constant[m]);
    if constexpr (F::kHasMin) {
      float c[16];
      F::mins(group, c);
      const float* sum_x = x[m].sum_x16 + 2 * block;
      sums.constant[m] = V::fma(V::load_floats(c), V::load_floats(sum_x), sums.constant[m]);
      sums.constant[m] = V::fma(V::load_floats(c + 8), V::load_floats(sum_x + 8), sums.constant[m]);
    }
  }
}

template <typename V, typename F, int M, bool Full>
inline void add_group(const uint8_t* group, const GemvRow (&x)[M], int64_t block, int count,
                      GemvSums<V, M>& sums) {
  float step[M][kGroupBlocks];
  typename V::Bytes words[2] = {};
  if constexpr (F::kSub == 16) {
    int8_t scales[16];
    F::sub_scales(group, scales);
    add_constants16<V, F, M>(group, x, block, step, scales, sums);
    uint64_t half[2];
    memcpy(half, scales, sizeof half);
    for (int i = 0; i < 2; ++i) words[i] = V::words_twice(half[i]);
  } else {
    add_constants<V, F, M, Full>(group, x, block, count, step, sums);
  }
  add_blocks<V, F, M, Full>(group, x, block, count, step, words, sums, GroupIndices{});
}

template <typename V, typename F, int M>
inline void dot_row(const uint8_t* row, const GemvRow (&x)[M], int64_t blocks, float* out,
                    int64_t out_stride) {
  GemvSums<V, M> sums;
  for (int m = 0; m < M; ++m) {
    sums.dot[m][0] = sums.dot[m][1] = sums.constant[m] = V::zero();
  }
  const uint8_t* group = row;
  int64_t block = 0;
  for (; block + kGroupBlocks <= blocks; block += kGroupBlocks, group += F::kBytes) {
    for (int line = 0; line < F::kBytes; line += 64) {
      __builtin_prefetch(group + kPrefetchBytes + line);
    }
    add_group<V, F, M, true>(group, x, block, kGroupBlocks, sums);
  }
  if constexpr (F::kBlocks > 1) {
    if (block < blocks) {
      const auto count = static_cast<int>(blocks - block);
      // A group reads past the last block; the copy keeps that inside our own memory.
      uint8_t tail[F::kBytes] = {};
      memcpy(tail, group, static_cast<size_t>(count) * F::kBlockBytes);
      for (int line = 0; line < count * F::kBlockBytes; line += 64) {
        __builtin_prefetch(group + kPrefetchBytes + line);
      }
      add_group<V, F, M, false>(tail, x, block, count, sums);
    }
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
    x[m] = prepare_row(args.xq, m, F::kOffset,
                       static_cast<char*>(args.scratch) + m * (blocks * 4 + blocks * 2 * 2));
  }
  const int64_t stride = blocks / kGroupBlocks * F::kBytes +
                         blocks % kGroupBlocks * static_cast<int64_t>(F::kBlockBytes);
  const auto* row = static_cast<const uint8_t*>(args.weights) + n_begin * stride;
  for (int64_t n = n_begin; n < n_end; ++n, row += stride) {
    dot_row<V, F, M>(row, x, blocks, args.out + n, args.out_stride);
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
    default:
      return gemv_rows<V, F, 3>(args, n_begin, n_end);
  }
}

}  // namespace
}  // namespace optima::kernels
