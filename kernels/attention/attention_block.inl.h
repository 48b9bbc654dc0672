// What one item of the paged attention is: its query rows, what each of them sees, the pages' keys
// and values, and the softmax of a tile of pages.
//
// Everything is in an unnamed namespace, so each instruction set has its own copy.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_tile.inl.h"

namespace optima::kernels {
namespace {

// Decoding asks for pages at most this many bytes, but one page at the least, before it reads them:
// more than the latency of the memory times its bandwidth, less than what the caches keep beside
// the work (docs/PERFORMANCE.md has the figures).
constexpr int64_t kBytesAhead = 16384;

// The query rows of one item and the kv head that they share.
struct Block {
  const AttentionArgs& args;
  int64_t kv_head;
  int64_t first_token;
  int64_t tokens;
  int64_t group;  // query heads per kv head
  Range within;   // positions this call may look at

  int64_t rows() const { return tokens * group; }
  int64_t head(int64_t row) const { return kv_head * group + row % group; }
  const float* query(int64_t row) const {
    return args.q + (first_token + row / group) * args.q_stride + head(row) * args.head_dim;
  }
  float* out(int64_t row) const {
    return args.out + (first_token + row / group) * args.out_stride + head(row) * args.head_dim;
  }
  // What token `token` of the block sees.
  Range visible(int64_t token) const {
    if (args.mask == AttentionMask::all) {
      return {larger(0, within.begin), smaller(args.first_position + args.tokens, within.end)};
    }
    const int64_t position = args.first_position + first_token + token;
    const int64_t first = args.window > 0 ? position - args.window + 1 : 0;
    return {larger(first, within.begin), smaller(position + 1, within.end)};
  }
  const unsigned char* slot(int64_t page) const {
    return args.pages[page] + args.slot_offset + kv_head * args.slot_stride;
  }
  // The slot to ask for in place of that of `page`. After the block's last page come those of the
  // item to come.
  const char* slot_ahead(int64_t page) const {
    const AttentionAhead& ahead = args.ahead;
    const int64_t last = (visible(tokens - 1).end - 1) / kPageTokens;
    const int64_t past = page - last - 1;
    if (past < 0) return reinterpret_cast<const char*>(slot(page));
    if (past >= ahead.count) return reinterpret_cast<const char*>(slot(last));
    return reinterpret_cast<const char*>(ahead.pages[past] + ahead.slot_offset);
  }
  // What to ask for while the half that begins `half` bytes into the slot of `page` is read.
  template <typename Element>
  Ahead<Element> ahead_of(int64_t page, int64_t half) const {
    const int64_t bytes = kv_slot_bytes(args.kv_type, args.head_dim);
    int shift = 0;
    while (2 << shift <= kPagesAside && (2 << shift) * bytes <= kBytesAhead) ++shift;
    const int64_t count = 1 << shift;
    const int64_t first = page & -count;
    Ahead<Element> ahead = {};
    for (int64_t i = 0; i < count; ++i) ahead.at[i] = slot_ahead(first + count + i) + half;
    ahead.shift = shift;
    ahead.first_line = (page - first) * (kPageTokens * args.head_dim / kLineElements<Element>);
    return ahead;
  }
};

// Sums of some positions for each row of a block: weighted values, largest logit, sum of weights.
struct Sums {
  float* values;  // [rows][stride]
  float* max;
  float* total;

  Sums row(int64_t row, int64_t stride) const {
    return {values + row * stride, max + row, total + row};
  }
};

void clear_sums(const Sums& sums, int64_t stride, int64_t rows) {
  for (int64_t i = 0; i < rows * stride; ++i) sums.values[i] = 0;
  for (int64_t row = 0; row < round_up_16(rows); ++row) {
    sums.max[row] = kMinusInfinity;
    sums.total[row] = 0;
  }
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
  for (int64_t row = 0; row < round_up_16(rows); ++row) {
    work.correction[row] = 0;
    work.tile_total[row] = 0;
    work.ones[row] = 1;
  }
  clear_sums({work.merged_sums, work.merged_max, work.merged_total}, work.sums_stride, rows);
}

// The elements at `from` of K or V of a page; their scales, which follow them, are widened into
// work.scales.
template <typename V, typename Element>
const Element* open_half(const Block& block, const unsigned char* from, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const Element* elements = reinterpret_cast<const Element*>(from);
  if constexpr (kScaled<Element>) {
    const auto* scales = reinterpret_cast<const uint16_t*>(elements + kPageTokens * head_dim);
    for (int64_t i = 0; i < kPageTokens * kv_blocks(head_dim); i += V::kWidth) {
      V::store(work.scales + i, V::load(scales + i));
    }
  }
  return elements;
}

template <typename V, typename Element>
Keys<V, Element> open_keys(const Block& block, int64_t page, const Work& work) {
  return {open_half<V, Element>(block, block.slot(page), work), work.scales};
}
template <typename V, typename Element>
Values<V, Element> open_values(const Block& block, int64_t page, const Work& work) {
  const int64_t head_dim = block.args.head_dim;
  const unsigned char* from = block.slot(page) + kv_half_bytes(block.args.kv_type, head_dim);
  return {open_half<V, Element>(block, from, work), work.scales, head_dim};
}

Range clip(Range range, int64_t base, int64_t width) {
  return {larger(range.begin - base, 0), smaller(range.end - base, width)};
}

// Turns the logits of the tile into weights. Whether all rows see all of it.
template <typename V>
bool weigh_tile(const Block& block, const Work& work, Range positions) {
  const int64_t width = positions.end - positions.begin;
  bool all_seen = true;
  for (int64_t token = 0; token < block.tokens; ++token) {
    const Range seen = clip(block.visible(token), positions.begin, width);
    if (seen.begin > 0 || seen.end < width) all_seen = false;
    for (int64_t row = token * block.group; row < (token + 1) * block.group; ++row) {
      weigh_row<V>(work, row, width, seen, block.args.softcap);
    }
  }
  correct_totals<V>(work, block.rows());
  return all_seen;
}

}  // namespace
}  // namespace optima::kernels
