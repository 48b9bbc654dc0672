// Tiles of pages that all rows of a block see whole, multiplied as tiles of bfloat16: logits and
// weighted values alike (vec/amx.h, vec/register_tiles.inl.h). Queries, keys, values and weights
// are rounded to it, 2^-9 of each at the most; the softmax between them stays fp32. Where rows see
// different parts of a tile, the loops of attention_tile.inl.h go on, so that nothing unseen is
// touched.
#pragma once

#include "kernels/attention/attention_block.inl.h"
#include "kernels/vec/tile_products.inl.h"

namespace optima::kernels {
namespace {

// For instruction sets without tiles.
struct NoTiles {};
template <typename Tiles>
constexpr bool kHasTiles = true;
template <>
constexpr bool kHasTiles<NoTiles> = false;

constexpr int64_t kTilePairs = 32;  // bfloat16 in a row of a tile

// Memory behind that of Work, for head sizes that are whole tiles.
struct WideWork {
  uint8_t* q;        // [row tiles][head_dim / 32]
  uint8_t* k;        // [pages][head_dim / 32], the rows of a tile pairs of dimensions
  uint8_t* v;        // [kTileTokens / 32][head_dim / 16], pairs of tokens
  uint8_t* weights;  // [row tiles][kTileTokens / 32]
};

inline int64_t wide_work_bytes(int64_t rows, int64_t head_dim) {
  if (head_dim % kTilePairs != 0) return 0;
  const int64_t row_tiles = round_up_16(rows) / 16;
  const int64_t head_tiles = head_dim / kTilePairs;
  return (row_tiles * (head_tiles + 2) + 2 * kTilePages * head_tiles) * kTileBytes;
}

inline size_t work_bytes_with_tiles(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  const int64_t rows = kQueryBlock * (heads / kv_heads);
  return work_bytes(heads, kv_heads, head_dim) + 64 +
         static_cast<size_t>(wide_work_bytes(rows, head_dim));
}

inline WideWork cut_wide_work(const Work& work, int64_t rows, int64_t head_dim) {
  const auto end = reinterpret_cast<uintptr_t>(work.q + rows * head_dim);
  const int64_t head_tiles = head_dim / kTilePairs;
  WideWork wide;
  wide.q = reinterpret_cast<uint8_t*>((end + 63) / 64 * 64);
  wide.k = wide.q + round_up_16(rows) / 16 * head_tiles * kTileBytes;
  wide.v = wide.k + kTilePages * head_tiles * kTileBytes;
  wide.weights = wide.v + kTilePages * head_tiles * kTileBytes;
  return wide;
}

// Where row `row` of a factor has its pairs 32 * block on, of `blocks` in a row.
inline uint8_t* factor_row(uint8_t* tiles, int64_t row, int64_t block, int64_t blocks) {
  return tiles + (row / 16 * blocks + block) * kTileBytes + row % 16 * kTileRowBytes;
}

template <typename V, typename Tiles>
class WideTile {
 public:
  WideTile(const Block& block, const Work& work)
      : block_(block),
        work_(work),
        head_dim_(block.args.head_dim),
        head_tiles_(head_dim_ / kTilePairs),
        row_tiles_(round_up_16(block.rows()) / 16),
        wide_(cut_wide_work(work, kQueryBlock * block.group, head_dim_)) {}

  // Whether the pages are such a tile.
  bool suits(Range pages, int64_t first) const {
    const Range positions = {pages.begin * kPageTokens, pages.end * kPageTokens};
    const int64_t end = block_.args.first_position + block_.first_token + block_.tokens;
    return end >= Tiles::kFromPosition && head_dim_ % kTilePairs == 0 &&
           pages.end - pages.begin == kTilePages && first == pages.begin &&
           block_.visible(0).end >= positions.end &&
           block_.visible(block_.tokens - 1).begin <= positions.begin;
  }

  void round_queries() const {
    if (head_dim_ % kTilePairs != 0) return;
    const typename V::Reg scale = V::set1(block_.args.scale);
    for (int64_t row = 0; row < block_.rows(); ++row) {
      const float* q = block_.query(row);
      for (int64_t tile = 0; tile < head_tiles_; ++tile, q += kTilePairs) {
        Tiles::round(V::mul(V::load(q), scale), V::mul(V::load(q + 16), scale),
                     factor_row(wide_.q, row, tile, head_tiles_));
      }
    }
  }

  template <typename Element>
  void attend(Range pages) const {
    for (int64_t page = pages.begin; page < pages.end; ++page) {
      round_keys<Element>(page, page - pages.begin);
      round_values<Element>(page, page - pages.begin);
    }
    score();
    weigh_tile<V>(block_, work_, {pages.begin * kPageTokens, pages.end * kPageTokens});
    round_weights();
    correct_sums();
    add_values();
  }

 private:
  template <typename Element>
  void round_keys(int64_t page, int64_t index) const {
    const auto keys = open_keys<V, Element>(block_, page, work_);
    uint8_t* to = wide_.k + index * head_tiles_ * kTileBytes;
    for (int64_t d = 0; d < head_dim_; d += 2, to += kTileRowBytes) {
      Tiles::round_pairs(keys.load(d, 0), keys.load(d + 1, 0), to);
    }
  }

  template <typename Element>
  void round_values(int64_t page, int64_t index) const {
    const auto values = open_values<V, Element>(block_, page, work_);
    for (int64_t t = 0; t < kPageTokens; t += 2) {
      const int64_t token = index * kPageTokens + t;
      uint8_t* to = wide_.v + token / kTilePairs * 2 * head_tiles_ * kTileBytes +
                    token % kTilePairs / 2 * kTileRowBytes;
      for (int64_t column = 0; column < head_dim_; column += 16, to += kTileBytes) {
        Tiles::round_pairs(values.load(t, column), values.load(t + 1, column), to);
      }
    }
  }

  void score() const {
    const int64_t next = head_tiles_ * kTileBytes;
    each_tile_product(row_tiles_, kTilePages, [&](int64_t i, int64_t page, auto is, auto pages) {
      multiply_tiles<Tiles, is.value, pages.value>(
          {wide_.q + i * next, next, kTileBytes}, {wide_.k + page * next, next, kTileBytes},
          head_tiles_,
          {work_.weights + i * 16 * kTileTokens + page * kPageTokens, kTileTokens, SumStart::zero});
    });
  }

  void round_weights() const {
    constexpr int64_t kBlocks = kTileTokens / kTilePairs;
    for (int64_t row = 0; row < block_.rows(); ++row) {
      const float* weights = work_.weights + row * kTileTokens;
      for (int64_t i = 0; i < kBlocks; ++i, weights += kTilePairs) {
        Tiles::round(V::load(weights), V::load(weights + 16),
                     factor_row(wide_.weights, row, i, kBlocks));
      }
    }
  }

  void correct_sums() const {
    for (int64_t row = 0; row < block_.rows(); ++row) {
      if (work_.correction[row] == 1.0f) continue;
      const typename V::Reg correction = V::set1(work_.correction[row]);
      float* sums = work_.sums + row * work_.sums_stride;
      for (int64_t d = 0; d < head_dim_; d += 16) {
        V::store(sums + d, V::mul(V::load(sums + d), correction));
      }
    }
  }

  void add_values() const {
    constexpr int64_t kBlocks = kTileTokens / kTilePairs;
    const int64_t columns = 2 * head_tiles_;
    each_tile_product(row_tiles_, columns, [&](int64_t i, int64_t j, auto is, auto js) {
      multiply_tiles<Tiles, is.value, js.value>(
          {wide_.weights + i * kBlocks * kTileBytes, kBlocks * kTileBytes, kTileBytes},
          {wide_.v + j * kTileBytes, kTileBytes, columns * kTileBytes}, kBlocks,
          {work_.sums + 16 * (i * work_.sums_stride + j), work_.sums_stride, SumStart::there});
    });
  }

  const Block& block_;
  const Work& work_;
  int64_t head_dim_;
  int64_t head_tiles_;  // of 32 dimensions
  int64_t row_tiles_;
  WideWork wide_;
};

}  // namespace
}  // namespace optima::kernels
