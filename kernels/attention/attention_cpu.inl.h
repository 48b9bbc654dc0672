// Flash attention over KV pages, written once over the words of kernels/vec/f32_*.h.
//
// The rows of a work item are all query heads of one kv head for a block of tokens (row = token *
// group + head in group), so that a page of K and V is fetched once for all of them. Logits are
// made for a tile of pages, the softmax is carried on by the running maximum and sum (Milakov &
// Gimelshein 2018, arXiv:1805.02867), and the weighted values are added to the rows' sums.
//
// With one token the rows are few: pages are read as they are, f16 widened in registers. With more
// tokens every tile is widened to fp32 once and then read by tiles of V::kRows rows.
//
// Masked positions are never a number: their logit is -inf, and their V is not touched, because 0
// times a stale infinity would be NaN.
//
// Everything is in an unnamed namespace, so each instruction set has its own copy.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/vec/math.inl.h"

namespace optima::kernels {
namespace {

constexpr int64_t kTilePages = 4;
constexpr int64_t kTileTokens = kTilePages * 16;
// Decoding asks for pages about this many bytes before it reads them: more than the latency of the
// memory times its bandwidth, less than what the first-level cache keeps beside the work.
constexpr int64_t kBytesAhead = 16384;
constexpr int64_t kLineBytes = 64;
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

// The query rows of one item and the kv head that they share.
struct Block {
  const AttentionArgs& args;
  int64_t kv_head;
  int64_t first_token;
  int64_t tokens;
  int64_t group;  // query heads per kv head

  int64_t rows() const { return tokens * group; }
  int64_t head(int64_t row) const { return kv_head * group + row % group; }
  const float* query(int64_t row) const {
    return args.q + (first_token + row / group) * args.q_stride + head(row) * args.head_dim;
  }
  float* out(int64_t row) const {
    return args.out + (first_token + row / group) * args.out_stride + head(row) * args.head_dim;
  }
  // What the token `token` of the block sees.
  Range visible(int64_t token) const {
    const int64_t position = args.first_position + first_token + token;
    return {args.window > 0 ? larger(position - args.window + 1, 0) : 0, position + 1};
  }
  template <typename Element>
  const Element* keys(int64_t page) const {
    return reinterpret_cast<const Element*>(args.pages[page] + args.slot_offset +
                                            kv_head * args.slot_stride);
  }
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
  float* k;           // [kTilePages][head_dim][16]
  float* v;           // [kTileTokens][head_dim]
  int64_t sums_stride;
};

int64_t work_floats(int64_t rows, int64_t head_dim) {
  return rows * head_dim + rows * round_up_16(head_dim) + rows * kTileTokens +
         5 * round_up_16(rows) + 2 * kTileTokens * head_dim;
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

template <typename V>
void start_rows(const Block& block, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const int64_t rows = block.rows();
  each_row_tile<V>(0, rows, [&](int64_t row, auto count) {
    float* q = work.q + row * head_dim;
    for (int64_t r = 0; r < count.value; ++r) {
      const float* query = block.query(row + r);
      for (int64_t d = 0; d < head_dim; ++d) q[d * count.value + r] = query[d] * block.args.scale;
    }
  });
  for (int64_t i = 0; i < rows * work.sums_stride; ++i) work.sums[i] = 0;
  for (int64_t row = 0; row < round_up_16(rows); ++row) {
    work.max[row] = kMinusInfinity;
    work.total[row] = 0;
    work.correction[row] = 0;
    work.tile_total[row] = 0;
    work.ones[row] = 1;
  }
}

// Logits of R rows for the 16 tokens of a page: out[r][t] = Σ_d q[d][r] k[d][t].
//
// Meanwhile Lines cache lines per step in d are asked for, from `ahead` on: every line needs its
// own request, and a burst of them would fill the queue of the core.
template <typename V, int R, int Lines, typename Element>
inline void score_page(const Element* k, const float* q, int64_t head_dim, float* out,
                       const char* ahead) {
  constexpr int kVectors = static_cast<int>(16 / V::kWidth);
  // Few rows are too few independent sums to hide the latency of the additions: split them by d.
  constexpr int kSums = R * kVectors;
  constexpr int kUnroll = kSums >= 8 ? 1 : kSums >= 4 ? 2 : kSums >= 2 ? 4 : 8;
  typename V::Reg acc[kUnroll][R][kVectors];
  for (auto& part : acc) {
    for (auto& row : part) {
      for (auto& sum : row) sum = V::zero();
    }
  }
  for (int64_t d = 0; d < head_dim; d += kUnroll) {
#pragma GCC unroll 8
    for (int u = 0; u < kUnroll; ++u) {
      for (int line = 0; line < Lines; ++line) {
        __builtin_prefetch(ahead + ((d + u) * Lines + line) * kLineBytes, 0, 3);
      }
      typename V::Reg key[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) key[j] = V::load(k + (d + u) * 16 + j * V::kWidth);
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
      typename V::Reg sum = acc[0][r][j];
#pragma GCC unroll 8
      for (int u = 1; u < kUnroll; ++u) sum = V::add(sum, acc[u][r][j]);
      V::store(out + r * kTileTokens + j * V::kWidth, sum);
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
// Σ_t weights[r][t] v[t][c].
template <typename Element>
struct ValueTile {
  const Element* v;
  int64_t head_dim;
  const float* weights;
  int64_t tokens;
  float* sums;
  int64_t sums_stride;
  const float* correction;
};

// Columns [column, column + C vectors); with lanes > 0 only that many of the one vector.
template <typename V, int R, int C, typename Element>
inline void add_columns(const ValueTile<Element>& tile, int64_t column, int64_t lanes) {
  typename V::Reg acc[R][C];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      acc[r][c] = V::mul(V::load(tile.sums + r * tile.sums_stride + column + c * V::kWidth),
                         V::set1(tile.correction[r]));
    }
  }
  for (int64_t t = 0; t < tile.tokens; ++t) {
    const Element* v = tile.v + t * tile.head_dim + column;
    typename V::Reg value[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      value[c] = lanes > 0 ? V::load_n(v, lanes) : V::load(v + c * V::kWidth);
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

template <typename V, int R, typename Element>
inline void add_values(const ValueTile<Element>& tile) {
  constexpr int kWide = R == 1 ? 8 : R <= 3 ? 4 : 2;
  int64_t column = 0;
  const auto step = [&](auto count) {
    constexpr int64_t kSpan = count.value * V::kWidth;
    if constexpr (count.value <= kWide) {
      for (; tile.head_dim - column >= kSpan; column += kSpan) {
        add_columns<V, R, count.value>(tile, column, /*lanes=*/0);
      }
    }
  };
  step(RowCount<8>());
  step(RowCount<4>());
  step(RowCount<2>());
  step(RowCount<1>());
  if (column < tile.head_dim) add_columns<V, R, 1>(tile, column, tile.head_dim - column);
}

template <typename V, typename Element>
void widen_pages(const Block& block, Range pages, const Work& work) {
  const int64_t half = block.args.head_dim * kPageTokens;
  for (int64_t page = pages.begin; page < pages.end; ++page) {
    const Element* source = block.keys<Element>(page);
    float* k = work.k + (page - pages.begin) * half;
    float* v = work.v + (page - pages.begin) * half;
    for (int64_t i = 0; i < half; i += V::kWidth) V::store(k + i, V::load(source + i));
    for (int64_t i = 0; i < half; i += V::kWidth) V::store(v + i, V::load(source + half + i));
  }
}

// Adds the values of the widened tile for rows that all see the tokens `seen` of it.
template <typename V>
void add_tile_values(const Block& block, const Work& work, Range rows, Range seen) {
  const int64_t head_dim = block.args.head_dim;
  each_row_tile<V>(rows.begin, rows.end, [&](int64_t row, auto count) {
    add_values<V, count.value>(ValueTile<float>{
        work.v + seen.begin * head_dim, head_dim, work.weights + row * kTileTokens + seen.begin,
        seen.end - seen.begin, work.sums + row * work.sums_stride, work.sums_stride,
        work.correction + row});
  });
}

Range clip(Range range, int64_t base, int64_t width) {
  return {larger(range.begin - base, 0), smaller(range.end - base, width)};
}

template <typename V>
void attend_tile(const Block& block, Range pages, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const int64_t base = pages.begin * kPageTokens;
  const int64_t width = (pages.end - pages.begin) * kPageTokens;
  each_row_tile<V>(0, block.rows(), [&](int64_t row, auto count) {
    for (int64_t page = 0; page < pages.end - pages.begin; ++page) {
      score_page<V, count.value, /*Lines=*/0>(
          work.k + page * head_dim * kPageTokens, work.q + row * head_dim, head_dim,
          work.weights + row * kTileTokens + page * kPageTokens, nullptr);
    }
  });
  bool all_seen = true;
  for (int64_t token = 0; token < block.tokens; ++token) {
    const Range seen = clip(block.visible(token), base, width);
    if (seen.begin > 0 || seen.end < width) all_seen = false;
    for (int64_t row = token * block.group; row < (token + 1) * block.group; ++row) {
      weigh_row<V>(work, row, width, seen, block.args.softcap);
    }
  }
  correct_totals<V>(work, block.rows());
  if (all_seen) {
    add_tile_values<V>(block, work, {0, block.rows()}, {0, width});
    return;
  }
  for (int64_t token = 0; token < block.tokens; ++token) {
    const Range seen = clip(block.visible(token), base, width);
    if (seen.begin >= seen.end) continue;
    add_tile_values<V>(block, work, {token * block.group, (token + 1) * block.group}, seen);
  }
}

// All pages that the block's tokens see.
template <typename V, typename Element>
void attend_block(const Block& block, const Work& work) {
  const int64_t first = block.visible(0).begin / kPageTokens;
  const int64_t last = (block.visible(block.tokens - 1).end - 1) / kPageTokens;
  for (int64_t page = first; page <= last; page += kTilePages) {
    const Range pages = {page, smaller(page + kTilePages, last + 1)};
    widen_pages<V, Element>(block, pages, work);
    attend_tile<V>(block, pages, work);
  }
}

// One token: the positions of `seen`, straight from the pages.
template <typename V, typename Element>
void attend_token(const Block& block, Range seen, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const int64_t last_page = (seen.end - 1) / kPageTokens;
  const int64_t slot_bytes = 2 * head_dim * kPageTokens * static_cast<int64_t>(sizeof(Element));
  const int64_t pages_ahead = (kBytesAhead + slot_bytes - 1) / slot_bytes;
  for (int64_t first = seen.begin / kPageTokens; first <= last_page; first += kTilePages) {
    const int64_t end = smaller(first + kTilePages, last_page + 1);
    for (int64_t page = first; page < end; ++page) {
      // A slot has as many lines as there are steps in d, times the bytes of two values.
      constexpr int kLines = sizeof(Element) / 2;
      const char* ahead = reinterpret_cast<const char*>(
          block.keys<Element>(smaller(page + pages_ahead, last_page)));
      each_row_tile<V>(0, block.rows(), [&](int64_t row, auto count) {
        float* logits = work.weights + row * kTileTokens + (page - first) * kPageTokens;
        score_page<V, count.value, kLines>(block.keys<Element>(page), work.q + row * head_dim,
                                           head_dim, logits, ahead);
      });
    }
    const int64_t width = (end - first) * kPageTokens;
    const Range in_tile = clip(seen, first * kPageTokens, width);
    for (int64_t row = 0; row < block.rows(); ++row) {
      weigh_row<V>(work, row, width, in_tile, block.args.softcap);
    }
    correct_totals<V>(work, block.rows());
    for (int64_t page = first; page < end; ++page) {
      const Range in_page = clip(seen, page * kPageTokens, kPageTokens);
      const Element* v = block.keys<Element>(page) + (kPageTokens + in_page.begin) * head_dim;
      const int64_t column = (page - first) * kPageTokens + in_page.begin;
      each_row_tile<V>(0, block.rows(), [&](int64_t row, auto count) {
        add_values<V, count.value>(ValueTile<Element>{
            v, head_dim, work.weights + row * kTileTokens + column, in_page.end - in_page.begin,
            work.sums + row * work.sums_stride, work.sums_stride,
            (page == first ? work.correction : work.ones) + row});
      });
    }
  }
}

// A row that saw nothing is zero; NaN in a total goes through.
void finish_rows(const Block& block, const Work& work) {
  for (int64_t row = 0; row < block.rows(); ++row) {
    const float factor = work.total[row] == 0 ? 0.0f : 1.0f / work.total[row];
    const float* sums = work.sums + row * work.sums_stride;
    float* out = block.out(row);
    for (int64_t d = 0; d < block.args.head_dim; ++d) out[d] = sums[d] * factor;
  }
}

template <typename V, typename Element>
void attend_items(const AttentionArgs& args, Range items, void* scratch) {
  const int64_t group = args.heads / args.kv_heads;
  const Work work = cut_work(scratch, kQueryBlock * group, args.head_dim);
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t first = item / args.kv_heads * kQueryBlock;
    const Block block = {args, item % args.kv_heads, first,
                         smaller(kQueryBlock, args.tokens - first), group};
    start_rows<V>(block, work);
    if (block.tokens == 1) {
      attend_token<V, Element>(block, block.visible(0), work);
    } else {
      attend_block<V, Element>(block, work);
    }
    finish_rows(block, work);
  }
}

template <typename V>
void run_attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  if (args.kv_type == KvType::f32) {
    attend_items<V, float>(args, {begin, end}, scratch);
  } else {
    attend_items<V, uint16_t>(args, {begin, end}, scratch);
  }
}

// One split: its pages, its sums. `part` = the row of `partial` for a head of the group.
template <typename V>
void run_split(const Block& block, Range pages, void* scratch, float* part, int64_t part_stride) {
  const int64_t head_dim = block.args.head_dim;
  const Work work = cut_work(scratch, kQueryBlock * block.group, head_dim);
  start_rows<V>(block, work);
  const Range visible = block.visible(0);
  const Range seen = {larger(visible.begin, pages.begin * kPageTokens),
                      smaller(visible.end, pages.end * kPageTokens)};
  if (seen.begin < seen.end) {
    if (block.args.kv_type == KvType::f32) {
      attend_token<V, float>(block, seen, work);
    } else {
      attend_token<V, uint16_t>(block, seen, work);
    }
  }
  for (int64_t row = 0; row < block.group; ++row) {
    const float* sums = work.sums + row * work.sums_stride;
    for (int64_t d = 0; d < head_dim; ++d) part[row * part_stride + d] = sums[d];
    part[row * part_stride + head_dim] = work.max[row];
    part[row * part_stride + head_dim + 1] = work.total[row];
  }
}

// Weighs each split by exp(its maximum - the largest). A split that saw nothing has maximum -inf
// and so weight 0, unless all have: then the sum is 0 and so is the result.
template <typename V>
void merge_splits(const AttentionArgs& args, int64_t head, int64_t splits, const float* parts) {
  const int64_t head_dim = args.head_dim;
  const int64_t stride = head_dim + 2;
  float max = kMinusInfinity;
  for (int64_t s = 0; s < splits; ++s) {
    const float part_max = parts[s * stride + head_dim];
    if (part_max > max) max = part_max;
  }
  const float offset = max == kMinusInfinity ? 0.0f : max;
  float* out = args.out + head * head_dim;
  for (int64_t d = 0; d < head_dim; ++d) out[d] = 0;
  float total = 0;
  for (int64_t s = 0; s < splits; ++s) {
    const float* part = parts + s * stride;
    const float weight = V::largest(vec_exp<V>(V::set1(part[head_dim] - offset)));
    total += weight * part[head_dim + 1];
    for (int64_t d = 0; d < head_dim; ++d) out[d] += weight * part[d];
  }
  const float factor = total == 0 ? 0.0f : 1.0f / total;
  for (int64_t d = 0; d < head_dim; ++d) out[d] *= factor;
}

}  // namespace
}  // namespace optima::kernels
