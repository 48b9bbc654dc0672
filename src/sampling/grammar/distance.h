// The fewest bytes that lead from a state to a final one.
#pragma once

#include <span>
#include <vector>

#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

class Distances {
 public:
  explicit Distances(const Program& program);
  int64_t of(StateId state) const { return of_[state]; }

  // Of `count` more members, each with a comma before it, the cheapest among `members` that are not
  // required; kUnlimited when there are too few.
  int64_t optional_members(const Object& object, std::span<const size_t> members,
                           int64_t count) const;

 private:
  int64_t of_edge(const Program& program, const Edge& edge) const;
  int64_t of_object(const Object& object) const;

  std::vector<int64_t> of_;
};

// Sums and products that stay at kUnlimited once there.
constexpr int64_t distance_sum(int64_t a, int64_t b) {
  return a > kUnlimited - b ? kUnlimited : a + b;
}
constexpr int64_t distance_product(int64_t count, int64_t each) {
  if (count == 0 || each == 0) return 0;
  return each > kUnlimited / count ? kUnlimited : count * each;
}

}  // namespace optima::sampling::grammar
