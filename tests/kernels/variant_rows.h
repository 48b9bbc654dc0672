// The rows of a variants array that this CPU can run; every test walks them. The others are named
// in the output, once.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "base/cpu_words.h"
#include "kernels/kernel.h"

namespace optima::kernels {

inline IsaMask host_isa() {
  const CpuWords words = cpu_words();
  return detect_isa({words.hwcap, words.hwcap2, words.states});
}

template <typename Fn>
std::vector<Variant<Fn>> runnable_rows(const Variants<Fn>& variants) {
  std::vector<Variant<Fn>> rows;
  const IsaMask available = host_isa();
  for (const Variant<Fn>& row : variants) {
    if ((row.isa & ~available) == 0) {
      rows.push_back(row);
    } else if (static std::set<std::string> named; named.insert(row.name).second) {
      std::cout << "[  NOT RUN ] " << row.name << ": this CPU lacks its instruction set\n";
    }
  }
  EXPECT_FALSE(rows.empty());
  EXPECT_EQ((variants.end() - 1)->isa, kIsaNone) << "the last row must run anywhere";
  return rows;
}

}  // namespace optima::kernels
