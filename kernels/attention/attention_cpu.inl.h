// Flash attention over KV pages, written once over the words of kernels/vec/f32_*.h.
//
// The rows of a work item are all query heads of one kv head for a block of tokens (row = token *
// group + head in group), so that a page of K and V is fetched once for all of them. Logits are
// made for a tile of pages, the softmax is carried on by the running maximum and sum (Milakov &
// Gimelshein 2018, arXiv:1805.02867), and the weighted values are added to the rows' sums.
//
// Where rows are few, as in decode, pages are read as they are and widened in registers. With more
// rows every tile is widened to fp32 once and then read by tiles of V::kRows rows, or multiplied as
// tiles of bfloat16 where the CPU does that (attention_wide.inl.h).
//
// Masked positions are never a number: their logit is -inf, and their V is not touched, because 0
// times a stale infinity would be NaN.
//
// Everything is in an unnamed namespace, so each instruction set has its own copy.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_block.inl.h"
#include "kernels/attention/attention_wide.inl.h"

namespace optima::kernels {
namespace {

// Pages are widened in registers for each tile of rows; for more tiles than these it pays to keep
// them widened.
constexpr int64_t kFewRowTiles = 2;
template <typename V>
bool has_few_rows(const Block& block) {
  return block.rows() <= kFewRowTiles * V::kRows;
}

// Pages [first, pages.end) of the tile that begins with pages.begin.
template <typename V, typename Element>
void widen_pages(const Block& block, Range pages, int64_t first, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const int64_t half = head_dim * kPageTokens;
  for (int64_t page = first; page < pages.end; ++page) {
    float* k = work.k + (page - pages.begin) * half;
    float* v = work.v + (page - pages.begin) * half;
    const auto keys = open_keys<V, Element>(block, page, work);
    for (int64_t d = 0; d < head_dim; ++d) {
      for (int64_t t = 0; t < kPageTokens; t += V::kWidth) {
        V::store(k + d * kPageTokens + t, keys.load(d, t));
      }
    }
    const auto values = open_values<V, Element>(block, page, work);
    for (int64_t t = 0; t < kPageTokens; ++t, v += head_dim) {
      int64_t column = 0;
      for (; head_dim - column >= V::kWidth; column += V::kWidth) {
        V::store(v + column, values.load(t, column));
      }
      if (column == head_dim) continue;
      V::store_n(v + column, values.load_n(t, column, head_dim - column), head_dim - column);
    }
  }
}

// Adds the values of the widened tile for rows that all see the tokens `seen` of it.
template <typename V>
void add_tile_values(const Block& block, const Work& work, Range rows, Range seen) {
  const int64_t head_dim = block.args.head_dim;
  each_row_tile<V>(rows.begin, rows.end, [&](int64_t row, auto count) {
    add_values<V, count.value>(
        ValueTile<V, float, NothingAhead>{{work.v + seen.begin * head_dim, nullptr, head_dim},
                                          work.weights + row * kTileTokens + seen.begin,
                                          seen.end - seen.begin,
                                          work.sums + row * work.sums_stride,
                                          work.sums_stride,
                                          work.correction + row,
                                          {}});
  });
}

// The tile of pages [pages.begin, pages.end); those before `first` are seen by nobody.
template <typename V>
void attend_tile(const Block& block, Range pages, int64_t first, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const int64_t base = pages.begin * kPageTokens;
  const int64_t width = (pages.end - pages.begin) * kPageTokens;
  each_row_tile<V>(0, block.rows(), [&](int64_t row, auto count) {
    for (int64_t page = first - pages.begin; page < pages.end - pages.begin; ++page) {
      score_page<V, count.value>(
          Keys<V, float>{work.k + page * head_dim * kPageTokens, nullptr}, work.q + row * head_dim,
          head_dim, work.weights + row * kTileTokens + page * kPageTokens, NothingAhead{});
    }
  });
  if (weigh_tile<V>(block, work, {base, base + width})) {
    add_tile_values<V>(block, work, {0, block.rows()}, {0, width});
    return;
  }
  for (int64_t token = 0; token < block.tokens; ++token) {
    const Range seen = clip(block.visible(token), base, width);
    if (seen.begin >= seen.end) continue;
    add_tile_values<V>(block, work, {token * block.group, (token + 1) * block.group}, seen);
  }
}

// Tiles begin at multiples of kTilePages, so that a query's sums do not depend on where its block
// begins to see.
int64_t tile_begin(int64_t page) {
  return page / kTilePages * kTilePages;
}

// All pages that the block's tokens see, by widened tiles.
template <typename V, typename Element, typename Tiles>
void attend_tiles(const Block& block, const Work& work) {
  const int64_t first = block.visible(0).begin / kPageTokens;
  const int64_t last = (block.visible(block.tokens - 1).end - 1) / kPageTokens;
  for (int64_t page = tile_begin(first); page <= last; page += kTilePages) {
    const Range pages = {page, smaller(page + kTilePages, last + 1)};
    if constexpr (kHasTiles<Tiles> && sizeof(Element) < sizeof(float)) {
      const WideTile<V, Tiles> wide(block, work);
      if (wide.suits(pages, larger(first, page))) {
        wide.template attend<Element>(pages);
        continue;
      }
    }
    widen_pages<V, Element>(block, pages, larger(first, page), work);
    attend_tile<V>(block, pages, larger(first, page), work);
  }
}

// A page of the tile that begins with page `tile`, what of it some rows see, and the values to ask
// for meanwhile.
template <typename Element>
struct SeenPage {
  int64_t tile;
  int64_t page;
  Range rows;
  Range seen;
  Ahead<Element> ahead;
};

// Adds what is seen of the values of one page; the sums are multiplied by the rows' corrections
// before.
template <typename V, typename Element>
void add_page_values(const Values<V, Element>& values, const Work& work,
                     const SeenPage<Element>& at, const float* correction) {
  const Values<V, Element> v = {values.at + at.seen.begin * values.head_dim,
                                values.scales + at.seen.begin * kv_blocks(values.head_dim),
                                values.head_dim};
  const int64_t column = (at.page - at.tile) * kPageTokens + at.seen.begin;
  Ahead<Element> ahead = at.ahead;
  ahead.first_line += at.seen.begin * values.head_dim / kLineElements<Element>;
  each_row_tile<V>(at.rows.begin, at.rows.end, [&](int64_t row, auto count) {
    add_values<V, count.value>(ValueTile<V, Element, Ahead<Element>>{
        v, work.weights + row * kTileTokens + column, at.seen.end - at.seen.begin,
        work.sums + row * work.sums_stride, work.sums_stride, correction + row, ahead});
  });
}

// Pages [pages.begin, pages.end) of the tile that begins with page `tile`, read as they are, for
// few rows.
template <typename V, typename Element>
void add_few(const Block& block, int64_t tile, Range pages, const Work& work) {
  const int64_t half = kv_half_bytes(block.args.kv_type, block.args.head_dim);
  const bool all_seen = weigh_tile<V>(block, work, {tile * kPageTokens, pages.end * kPageTokens});
  for (int64_t page = pages.begin; page < pages.end; ++page) {
    const float* correction = page == pages.begin ? work.correction : work.ones;
    const auto values = open_values<V, Element>(block, page, work);
    const auto ahead = block.ahead_of<Element>(page, half);
    if (all_seen) {
      add_page_values<V, Element>(
          values, work, {tile, page, {0, block.rows()}, {0, kPageTokens}, ahead}, correction);
      continue;
    }
    // A token whose first page is a later one has no sums yet that a correction could change.
    for (int64_t token = 0; token < block.tokens; ++token) {
      const Range seen = clip(block.visible(token), page * kPageTokens, kPageTokens);
      if (seen.begin >= seen.end) continue;
      const Range rows = {token * block.group, (token + 1) * block.group};
      add_page_values<V, Element>(values, work, {tile, page, rows, seen, ahead}, correction);
    }
  }
}

// Few rows over pages that are read as they are.
template <typename V, typename Element>
void attend_few(const Block& block, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const int64_t first_page = block.visible(0).begin / kPageTokens;
  const int64_t last_page = (block.visible(block.tokens - 1).end - 1) / kPageTokens;
  for (int64_t tile = tile_begin(first_page); tile <= last_page; tile += kTilePages) {
    const Range pages = {larger(tile, first_page), smaller(tile + kTilePages, last_page + 1)};
    for (int64_t page = pages.begin; page < pages.end; ++page) {
      const auto ahead = block.ahead_of<Element>(page, 0);
      const auto keys = open_keys<V, Element>(block, page, work);
      each_row_tile<V>(0, block.rows(), [&](int64_t row, auto count) {
        float* logits = work.weights + row * kTileTokens + (page - tile) * kPageTokens;
        score_page<V, count.value>(keys, work.q + row * head_dim, head_dim, logits, ahead);
      });
    }
    add_few<V, Element>(block, tile, pages, work);
  }
}

// What the sums of a row are multiplied by in the end. `max` and `total` are those of the positions
// seen; the head's sink, if it has one, joins them. A row that saw nothing gives zero; NaN in a
// total or a sink goes through.
template <typename V>
float last_factor(const AttentionArgs& args, int64_t head, float max, float total) {
  if (args.sinks == nullptr) return total == 0 ? 0.0f : 1.0f / total;
  const float sink = args.sinks[head];
  const float largest = sink <= max ? max : sink;
  const float offset = largest == kMinusInfinity ? 0.0f : largest;
  const float kept = V::largest(vec_exp<V>(V::set1(max - offset)));
  const float share = V::largest(vec_exp<V>(V::set1(sink - offset)));
  const float all = total * kept + share;
  return all == 0 ? 0.0f : kept / all;
}

template <typename V>
void finish_rows(const Block& block, const Sums& sums, int64_t stride) {
  for (int64_t row = 0; row < block.rows(); ++row) {
    const float factor =
        last_factor<V>(block.args, block.head(row), sums.max[row], sums.total[row]);
    const float* values = sums.values + row * stride;
    float* out = block.out(row);
    for (int64_t d = 0; d < block.args.head_dim; ++d) out[d] = values[d] * factor;
  }
}

// The sums of one row over one piece.
struct RowPart {
  const float* values;
  float max;
  float total;
};

// `share` of the part joins `kept` of row 0 of `sums`; both are shares of the larger maximum. A
// part that saw nothing has maximum -inf and so no share.
template <typename V>
void merge_row(const RowPart& part, int64_t head_dim, const Sums& sums) {
  const float largest = part.max > *sums.max ? part.max : *sums.max;
  const float offset = largest == kMinusInfinity ? 0.0f : largest;
  const float kept = V::largest(vec_exp<V>(V::set1(*sums.max - offset)));
  const float share = V::largest(vec_exp<V>(V::set1(part.max - offset)));
  *sums.total = *sums.total * kept + part.total * share;
  for (int64_t d = 0; d < head_dim; ++d)
    sums.values[d] = sums.values[d] * kept + part.values[d] * share;
  *sums.max = largest;
}

template <typename V, typename Element, typename Tiles>
void attend_pages(const Block& block, const Work& work) {
  if (has_few_rows<V>(block)) {
    attend_few<V, Element>(block, work);
  } else {
    attend_tiles<V, Element, Tiles>(block, work);
  }
}

// The sums of one piece.
template <typename V, typename Tiles>
void attend_piece(const Block& block, const Work& work) {
  clear_sums({work.sums, work.max, work.total}, work.sums_stride, block.rows());
  if (block.visible(0).begin >= block.visible(block.tokens - 1).end) return;
  switch (block.args.kv_type) {
    case KvType::f32:
      return attend_tiles<V, float, NoTiles>(block, work);
    case KvType::f16:
      return attend_pages<V, uint16_t, Tiles>(block, work);
    case KvType::bf16:
      return attend_pages<V, Bf16, Tiles>(block, work);
    case KvType::q8_0:
      return attend_pages<V, int8_t, Tiles>(block, work);
  }
}

// The sums of all that the block sees, piece by piece; they are where it returns them.
template <typename V, typename Tiles = NoTiles>
Sums attend_block(const Block& block, const Work& work) {
  const Sums piece_sums = {work.sums, work.max, work.total};
  const Sums merged = {work.merged_sums, work.merged_max, work.merged_total};
  start_rows<V>(block, work);
  if constexpr (kHasTiles<Tiles>) {
    if (!has_few_rows<V>(block)) WideTile<V, Tiles>(block, work).round_queries();
  }
  const int64_t end = block.visible(block.tokens - 1).end;
  const int64_t first = attention_piece(block.visible(0).begin / kPageTokens);
  const int64_t last = end > 0 ? attention_piece((end - 1) / kPageTokens) : first;
  for (int64_t piece = first; piece <= last; ++piece) {
    Block part = block;
    part.within.begin = larger(block.within.begin, attention_piece_begin(piece) * kPageTokens);
    if (piece < last)
      part.within.end = smaller(block.within.end, attention_piece_begin(piece + 1) * kPageTokens);
    attend_piece<V, Tiles>(part, work);
    if (first == last) return piece_sums;
    for (int64_t row = 0; row < block.rows(); ++row) {
      merge_row<V>({work.sums + row * work.sums_stride, work.max[row], work.total[row]},
                   block.args.head_dim, merged.row(row, work.sums_stride));
    }
  }
  return merged;
}

template <typename V, typename Tiles = NoTiles>
void run_attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  const int64_t group = args.heads / args.kv_heads;
  const Work work = cut_work(scratch, kQueryBlock * group, args.head_dim);
  if constexpr (kHasTiles<Tiles>) Tiles::begin();
  for (int64_t item = begin; item < end; ++item) {
    const int64_t first = item / args.kv_heads * kQueryBlock;
    const Block block = {args,  item % args.kv_heads,
                         first, smaller(kQueryBlock, args.tokens - first),
                         group, {0, args.first_position + args.tokens}};
    const Sums sums = attend_block<V, Tiles>(block, work);
    finish_rows<V>(block, sums, work.sums_stride);
  }
  if constexpr (kHasTiles<Tiles>) Tiles::end();
}

// Where split 0 of a row of the query (token * heads + head) lies among the partial sums; its other
// splits follow.
inline int64_t partial_at(const AttentionArgs& args, int64_t row, int64_t splits) {
  return row * splits * (args.head_dim + 2);
}

// One split: the sums of pages [within.begin, within.end) for one kv head.
template <typename V>
void run_split(const AttentionArgs& args, int64_t kv_head, Range within, int64_t split,
               int64_t splits, float* partial, void* scratch) {
  const int64_t head_dim = args.head_dim;
  const int64_t group = args.heads / args.kv_heads;
  const Work work = cut_work(scratch, kQueryBlock * group, head_dim);
  const Block block = {
      args, kv_head, 0, args.tokens, group, {within.begin * kPageTokens, within.end * kPageTokens}};
  const Sums sums = attend_block<V>(block, work);
  for (int64_t row = 0; row < block.rows(); ++row) {
    const float* values = sums.values + row * work.sums_stride;
    float* part = partial + partial_at(args, row / group * args.heads + block.head(row), splits) +
                  split * (head_dim + 2);
    for (int64_t d = 0; d < head_dim; ++d) part[d] = values[d];
    part[head_dim] = sums.max[row];
    part[head_dim + 1] = sums.total[row];
  }
}

// Rows [rows.begin, rows.end) of the query, whose pieces were computed apart.
template <typename V>
void merge_splits(const AttentionArgs& args, Range rows, int64_t splits, const float* partial) {
  const int64_t head_dim = args.head_dim;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t head = row % args.heads;
    float* out = args.out + row / args.heads * args.out_stride + head * head_dim;
    for (int64_t d = 0; d < head_dim; ++d) out[d] = 0;
    float max = kMinusInfinity;
    float total = 0;
    const float* part = partial + partial_at(args, row, splits);
    for (int64_t s = 0; s < splits; ++s, part += head_dim + 2) {
      merge_row<V>({part, part[head_dim], part[head_dim + 1]}, head_dim, {out, &max, &total});
    }
    const float factor = last_factor<V>(args, head, max, total);
    for (int64_t d = 0; d < head_dim; ++d) out[d] *= factor;
  }
}

}  // namespace
}  // namespace optima::kernels
