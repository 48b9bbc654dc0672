// Greedy offset assignment by size (Pisarchyk & Lee 2020, "Efficient memory management for deep
// neural net inference", arXiv:2001.03288): near the lower bound for chains of layers.
#include "graph/arena.h"

#include <algorithm>
#include <numeric>

namespace optima::graph {
namespace {

constexpr int64_t kLine = 64;

bool alive_together(const ArenaBlock& a, const ArenaBlock& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

// The lowest offset where `block` overlaps none of `placed` (sorted by offset).
int64_t lowest_gap(const ArenaBlock& block, const std::vector<const ArenaBlock*>& placed) {
  int64_t offset = 0;
  for (const ArenaBlock* other : placed) {
    if (!alive_together(block, *other)) continue;
    if (offset + block.bytes <= other->offset) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

}  // namespace

int64_t place_blocks(std::vector<ArenaBlock>& blocks) {
  for (ArenaBlock& block : blocks) block.bytes = (block.bytes + kLine - 1) / kLine * kLine;
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const ArenaBlock*> placed;
  int64_t size = 0;
  for (const size_t index : order) {
    ArenaBlock& block = blocks[index];
    block.offset = lowest_gap(block, placed);
    size = std::max(size, block.offset + block.bytes);
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), &block,
        [](const ArenaBlock* a, const ArenaBlock* b) { return a->offset < b->offset; });
    placed.insert(at, &block);
  }
  return size;
}

}  // namespace optima::graph
