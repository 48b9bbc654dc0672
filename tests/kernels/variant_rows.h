// The rows of a variants array that this CPU can run; every test walks them.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kernels/kernel.h"

namespace optima::kernels {

template <typename Fn>
std::vector<Variant<Fn>> runnable_rows(const Variants<Fn>& variants) {
  std::vector<Variant<Fn>> rows;
  const IsaMask available = detect_isa();
  for (const Variant<Fn>& row : variants) {
    if ((row.isa & ~available) == 0) rows.push_back(row);
  }
  EXPECT_FALSE(rows.empty());
  EXPECT_EQ((variants.end() - 1)->isa, kIsaNone) << "the last row must run anywhere";
  return rows;
}

}  // namespace optima::kernels
