// The inner loops of the paged attention: logits of a few rows against one page, the running
// softmax, and the weighted sum of values. attention_cpu.inl.h walks the pages and calls them.
//
// Everything is in an unnamed namespace, so each instruction set has its own copy.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/attention/attention.h"
#include "kernels/vec/math.inl.h"

namespace optima::kernels {
namespace {

constexpr int64_t kTilePages = 4;
constexpr int64_t kTileTokens = kTilePages * 16;
constexpr int64_t kPagesAside = 4;  // at most so many are asked for side by side
constexpr float kMinusInfinity = -__builtin_inff();

constexpr int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
constexpr int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
constexpr int64_t round_up_16(int64_t n) {
  return (n + 15) / 16 * 16;
}

// Positions [begin, end).
struct Range {
  int64_t begin;
  int64_t end;
};

// The thread's working memory: one allocation, cut into arrays. Row counts are padded to whole
// vectors.
struct Work {
  float* q;           // row tiles of R rows, each [head_dim][R], scaled
  float* sums;        // [rows][sums_stride]: weighted values so far
  float* weights;     // [rows][kTileTokens]: logits, then weights of the tile at hand
  float* max;         // [rows] largest logit so far
  float* total;       // [rows] sum of weights so far
  float* correction;  // [rows] what the new maximum makes of the old sums
  float* tile_total;  // [rows] sum of the weights of the tile at hand
  float* ones;        // [rows]
  float* scales;      // [16 * blocks]: of the keys or values of the page at hand, where it has some
  // The pieces before the one at hand, merged (attention_piece()).
  float* merged_sums;   // [rows][sums_stride]
  float* merged_max;    // [rows]
  float* merged_total;  // [rows]
  float* k;             // [kTilePages][head_dim][16]
  float* v;             // [kTileTokens][head_dim]
  int64_t sums_stride;
};

int64_t work_floats(int64_t rows, int64_t head_dim) {
  return rows * head_dim + 2 * rows * round_up_16(head_dim) + rows * kTileTokens +
         7 * round_up_16(rows) + 2 * kTileTokens * head_dim + kPageTokens * kv_blocks(head_dim);
}

size_t work_bytes(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  const int64_t rows = kQueryBlock * (heads / kv_heads);
  return static_cast<size_t>(work_floats(rows, head_dim)) * sizeof(float) + 64;
}

Work cut_work(void* scratch, int64_t rows, int64_t head_dim) {
  const uintptr_t address = (reinterpret_cast<uintptr_t>(scratch) + 63) / 64 * 64;
  float* next = reinterpret_cast<float*>(address);
  const auto take = [&next](int64_t count) {
    float* array = next;
    next += count;
    return array;
  };
  Work work;
  work.sums_stride = round_up_16(head_dim);
  work.k = take(kTileTokens * head_dim);
  work.v = take(kTileTokens * head_dim);
  work.sums = take(rows * work.sums_stride);
  work.weights = take(rows * kTileTokens);
  work.max = take(round_up_16(rows));
  work.total = take(round_up_16(rows));
  work.correction = take(round_up_16(rows));
  work.tile_total = take(round_up_16(rows));
  work.ones = take(round_up_16(rows));
  work.merged_sums = take(rows * work.sums_stride);
  work.merged_max = take(round_up_16(rows));
  work.merged_total = take(round_up_16(rows));
  work.scales = take(kPageTokens * kv_blocks(head_dim));
  work.q = take(rows * head_dim);
  return work;
}

template <int N>
struct RowCount {
  static constexpr int value = N;
};

// Calls body(first row, RowCount<n>) for tiles that cover [begin, end), tallest first.
template <typename V, typename Body>
inline void each_row_tile(int64_t begin, int64_t end, const Body& body) {
  int64_t row = begin;
  for (; end - row >= V::kRows; row += V::kRows) body(row, RowCount<V::kRows>());
  const auto one = [&](auto count) {
    if constexpr (count.value < V::kRows) {
      if (end - row >= count.value) {
        body(row, count);
        row += count.value;
      }
    }
  };
  one(RowCount<8>());
  one(RowCount<4>());
  one(RowCount<3>());
  one(RowCount<2>());
  one(RowCount<1>());
}

// The largest power of two, at most `chains`, of sums for each of `vectors` that `sums` can hold.
constexpr int chains_at_once(int chains, int vectors, int sums) {
  while (chains > 1 && chains * vectors > sums) chains /= 2;
  return chains;
}

// The largest power of two, at most 8, of columns for which `rows` rows stay within `sums` sums.
constexpr int wide_columns(int rows, int sums) {
  int columns = 8;
  while (columns > 1 && rows * columns > sums) columns /= 2;
  return columns;
}

// Whether elements of this type have scales beside them.
template <typename Element>
constexpr bool kScaled = false;
template <>
constexpr bool kScaled<int8_t> = true;

// The keys of a page, [head_dim][16].
template <typename V, typename Element>
struct Keys {
  const Element* at;
  const float* scales;  // [blocks][16], if they have some

  inline typename V::Reg load(int64_t d, int64_t t) const {
    const typename V::Reg keys = V::load(at + d * kPageTokens + t);
    if constexpr (!kScaled<Element>) return keys;
    return V::mul(keys, V::load(scales + d / kKvBlockDims * kPageTokens + t));
  }
};

// The values of some tokens, [tokens][head_dim].
template <typename V, typename Element>
struct Values {
  const Element* at;
  const float* scales;  // [tokens][blocks], if they have some
  int64_t head_dim;

  inline typename V::Reg load(int64_t t, int64_t column) const {
    return scaled(V::load(at + t * head_dim + column), t, column);
  }
  inline typename V::Reg load_n(int64_t t, int64_t column, int64_t lanes) const {
    return scaled(V::load_n(at + t * head_dim + column, lanes), t, column);
  }

 private:
  // A vector begins at a multiple of its width, so it lies in one block.
  inline typename V::Reg scaled(typename V::Reg values, int64_t t, int64_t column) const {
    if constexpr (!kScaled<Element>) return values;
    return V::mul(values, V::set1(scales[t * kv_blocks(head_dim) + column / kKvBlockDims]));
  }
};

template <typename Element>
constexpr int64_t kLineElements = 64 / static_cast<int64_t>(sizeof(Element));

// The cache that elements ahead are asked into, as __builtin_prefetch counts: floats of 16 bits
// into the second level, bytes into the first, whose loads are more and smaller
// (docs/PERFORMANCE.md has the figures).
template <typename Element>
constexpr int kAskInto = sizeof(Element) == 1 ? 3 : 2;

// Elements that will be read soon: keys, or values, of pages ahead. While a page is read, as many
// lines of theirs are asked for, turn by turn of 2^shift pages, so that the memory sees a stream
// for each.
template <typename Element>
struct Ahead {
  const char* at[kPagesAside];
  int shift;
  int64_t first_line;  // of the page at hand among the lines of the 2^shift pages around it

  inline void ask(int64_t element) const {
    const int64_t line = first_line + element / kLineElements<Element>;
    __builtin_prefetch(at[line & ((1 << shift) - 1)] + (line >> shift) * 64, 0, kAskInto<Element>);
  }
};
struct NothingAhead {
  inline void ask(int64_t /*element*/) const {}
};

// Logits of R rows for the 16 tokens of a page: out[r][t] = Σ_d q[d][r] k[d][t]. The sum is made
// of kChains chains over d, added in order: enough of them to hide the latency of an addition where
// rows are few, and the same for any R, so that a row's logits do not depend on its neighbours.
//
// Meanwhile the same keys of a page ahead are asked for: every line needs its own request, and a
// burst of them would fill the queue of the core.
template <typename V, int R, typename Element, typename Bytes>
inline void score_page(const Keys<V, Element>& k, const float* q, int64_t head_dim, float* out,
                       const Bytes& ahead) {
  constexpr int kVectors = static_cast<int>(16 / V::kWidth);
  constexpr int kChains = 4 / kVectors;
  constexpr int kAtOnce = chains_at_once(kChains, R * kVectors, V::kSums);
  constexpr int64_t kLineSteps = larger(1, kLineElements<Element> / kPageTokens);
  for (int first = 0; first < kChains; first += kAtOnce) {
    typename V::Reg acc[kAtOnce][R][kVectors];
    for (auto& part : acc) {
      for (auto& row : part) {
        for (auto& sum : row) sum = V::zero();
      }
    }
    for (int64_t d = first; d < head_dim; d += kChains) {
#pragma GCC unroll 4
      for (int u = 0; u < kAtOnce; ++u) {
        if ((d + u) % kLineSteps == 0) ahead.ask((d + u) * kPageTokens);
        typename V::Reg key[kVectors];
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) key[j] = k.load(d + u, j * V::kWidth);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
          const typename V::Reg query = V::set1(q[(d + u) * R + r]);
#pragma GCC unroll 2
          for (int j = 0; j < kVectors; ++j) acc[u][r][j] = V::fma(query, key[j], acc[u][r][j]);
        }
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        float* to = out + r * kTileTokens + j * V::kWidth;
        typename V::Reg sum = first == 0 ? acc[0][r][j] : V::add(V::load(to), acc[0][r][j]);
#pragma GCC unroll 4
        for (int u = 1; u < kAtOnce; ++u) sum = V::add(sum, acc[u][r][j]);
        V::store(to, sum);
      }
    }
  }
}

// Turns the logits of one row, positions [0, width) of the tile, into weights. Only those in
// `seen` count.
template <typename V>
inline void weigh_row(const Work& work, int64_t row, int64_t width, Range seen, float softcap) {
  using Reg = typename V::Reg;
  float* weights = work.weights + row * kTileTokens;
  const bool masked = seen.begin > 0 || seen.end < width;
  Reg largest = V::set1(kMinusInfinity);
  for (int64_t t = 0; t < width; t += V::kWidth) {
    Reg logit = V::load(weights + t);
    if (softcap > 0) {
      logit = V::mul(V::set1(softcap), vec_tanh<V>(V::div(logit, V::set1(softcap))));
    }
    if (masked) logit = V::keep_range(logit, t, seen.begin, seen.end);
    V::store(weights + t, logit);
    largest = V::max(largest, logit);
  }
  const float old_max = work.max[row];
  const float tile_max = V::largest(largest);
  const float new_max = tile_max > old_max ? tile_max : old_max;
  // While nothing is seen the maximum is -inf, and (-inf) - (-inf) would be NaN.
  const float offset = new_max == kMinusInfinity ? 0.0f : new_max;
  Reg total = V::zero();
  for (int64_t t = 0; t < width; t += V::kWidth) {
    const Reg weight = vec_exp<V>(V::sub(V::load(weights + t), V::set1(offset)));
    V::store(weights + t, weight);
    total = V::add(total, weight);
  }
  work.max[row] = new_max;
  work.correction[row] = old_max - offset;
  work.tile_total[row] = V::sum(total);
}

// correction = exp(old maximum - new maximum), total = total * correction + the tile's.
template <typename V>
void correct_totals(const Work& work, int64_t rows) {
  for (int64_t row = 0; row < rows; row += V::kWidth) {
    const typename V::Reg correction = vec_exp<V>(V::load(work.correction + row));
    V::store(work.correction + row, correction);
    V::store(work.total + row,
             V::fma(V::load(work.total + row), correction, V::load(work.tile_total + row)));
  }
}

// Operands of the second product for R rows: sums[r][c] = sums[r][c] * correction[r] +
// Σ_t weights[r][t] v[t][c]. Meanwhile the same values of a page ahead are asked for.
template <typename V, typename Element, typename Bytes>
struct ValueTile {
  Values<V, Element> v;
  const float* weights;
  int64_t tokens;
  float* sums;
  int64_t sums_stride;
  const float* correction;
  Bytes ahead;
};

// Columns [column, column + C vectors); with lanes > 0 only that many of the one vector.
template <typename V, int R, int C, typename Element, typename Bytes>
inline void add_columns(const ValueTile<V, Element, Bytes>& tile, int64_t column, int64_t lanes) {
  typename V::Reg acc[R][C];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      acc[r][c] = V::mul(V::load(tile.sums + r * tile.sums_stride + column + c * V::kWidth),
                         V::set1(tile.correction[r]));
    }
  }
  constexpr int64_t kLineVectors = kLineElements<Element> / V::kWidth;
  for (int64_t t = 0; t < tile.tokens; ++t) {
    typename V::Reg value[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      if (c % kLineVectors == 0) tile.ahead.ask(t * tile.v.head_dim + column + c * V::kWidth);
      value[c] =
          lanes > 0 ? tile.v.load_n(t, column, lanes) : tile.v.load(t, column + c * V::kWidth);
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const typename V::Reg weight = V::set1(tile.weights[r * kTileTokens + t]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) acc[r][c] = V::fma(weight, value[c], acc[r][c]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      V::store(tile.sums + r * tile.sums_stride + column + c * V::kWidth, acc[r][c]);
    }
  }
}

template <typename V, int R, typename Element, typename Bytes>
inline void add_values(const ValueTile<V, Element, Bytes>& tile) {
  constexpr int kWide = wide_columns(R, V::kSums);
  const int64_t head_dim = tile.v.head_dim;
  int64_t column = 0;
  const auto step = [&](auto count) {
    constexpr int64_t kSpan = count.value * V::kWidth;
    if constexpr (count.value <= kWide) {
      for (; head_dim - column >= kSpan; column += kSpan) {
        add_columns<V, R, count.value>(tile, column, /*lanes=*/0);
      }
    }
  };
  step(RowCount<8>());
  step(RowCount<4>());
  step(RowCount<2>());
  step(RowCount<1>());
  if (column < head_dim) add_columns<V, R, 1>(tile, column, head_dim - column);
}

}  // namespace
}  // namespace optima::kernels
