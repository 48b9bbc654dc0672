#include "graph/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace optima::graph {
namespace {

bool overlap(const ArenaBlock& a, const ArenaBlock& b) {
  const bool in_time = a.first_step <= b.last_step && b.first_step <= a.last_step;
  const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return in_time && in_space;
}

TEST(Arena, ReusesWhatIsNoLongerAlive) {
  std::vector<ArenaBlock> blocks = {{640, 0, 1, 0}, {640, 2, 3, 0}, {640, 1, 2, 0}};
  EXPECT_EQ(place_blocks(blocks), 1280);
  EXPECT_EQ(blocks[0].offset, blocks[1].offset);
}

TEST(Arena, NothingAliveTogetherOverlaps) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaBlock> blocks(1 + random() % 40);
    int64_t total = 0;
    for (ArenaBlock& block : blocks) {
      block.bytes = 1 + static_cast<int64_t>(random() % 5000);
      block.first_step = static_cast<int32_t>(random() % 30);
      block.last_step = block.first_step + static_cast<int32_t>(random() % 10);
    }
    const int64_t size = place_blocks(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      total += blocks[i].bytes;
      EXPECT_EQ(blocks[i].offset % 64, 0);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, size);
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(blocks[i], blocks[j]));
    }
    EXPECT_LE(size, total);
  }
}

}  // namespace
}  // namespace optima::graph
