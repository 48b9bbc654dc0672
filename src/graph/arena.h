// Places blocks with known lifetimes into one arena so that blocks alive together never overlap.
#pragma once

#include <cstdint>
#include <vector>

namespace optima::graph {

struct ArenaBlock {
  int64_t bytes = 0;
  int32_t first_step = 0;  // alive in steps [first_step, last_step], both included
  int32_t last_step = 0;
  int64_t offset = 0;  // out: multiple of 64
};

// Fills the offsets, largest block first, each at the lowest free place; returns the arena's size.
int64_t place_blocks(std::vector<ArenaBlock>& blocks);

}  // namespace optima::graph
