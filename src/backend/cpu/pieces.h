// How threads share a product: in pieces that shrink.
#pragma once

#include <algorithm>
#include <cstdint>

namespace optima::backend::cpu {

// Granules (MatmulKernel::granule) of a product's weight rows.
struct Granules {
  int64_t begin, end;
};

// Cuts granules into a piece for each thread that is half of its share, then one that is half of
// its share of the rest, and so on (guided self-scheduling, Polychronopoulos & Kuck 1987, halved):
// most rows are read in long runs, and the last pieces are short enough to even out. Threads take
// pieces in order, whoever comes first.
class Pieces {
 public:
  Pieces(int64_t granules, int threads)
      : threads_(threads),
        granules_(granules),
        least_(std::max<int64_t>(1, granules / (threads * kLeastPart))) {}

  // Empty behind the last.
  Granules at(int64_t index) const {
    int64_t begin = 0;
    int64_t size = size_from(begin);
    for (; index >= threads_ && size > least_; index -= threads_) {
      begin += size * threads_;
      size = size_from(begin);
    }
    begin += index * size;
    return {std::min(begin, granules_), std::min(begin + size, granules_)};
  }

 private:
  // The smallest pieces are this part of a thread's share: taking one costs nothing beside it.
  static constexpr int64_t kLeastPart = 16;

  int64_t size_from(int64_t begin) const {
    return std::max(least_, (granules_ - begin) / (2 * threads_));
  }

  int64_t threads_;
  int64_t granules_;
  int64_t least_;
};

}  // namespace optima::backend::cpu
