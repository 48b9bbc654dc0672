// What one forward pass computes, as flat data: tokens of one or more sequences side by side, and
// the rows whose result is wanted. No pointers to requests or sessions.
#pragma once

#include <cstdint>
#include <span>

namespace optima::graph {

// Tokens [row_begin, row_begin + tokens) of the batch are positions first_position... of one
// sequence. pages[g] lists the sequence's page pointers of KV group g from page 0 on.
struct SequenceRun {
  int64_t row_begin = 0;
  int64_t tokens = 0;
  int64_t first_position = 0;
  int64_t context = 0;  // the most tokens that the sequence may grow to: chooses rotary frequencies
  std::span<unsigned char* const* const> pages;
};

struct Batch {
  std::span<const int32_t> token_ids;  // [tokens]
  std::span<const int32_t> positions;  // [tokens]
  std::span<const SequenceRun> sequences;
  std::span<const int32_t> output_rows;  // batch rows to score, ascending
};

}  // namespace optima::graph
