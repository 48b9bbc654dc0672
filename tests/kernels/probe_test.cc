// The probe's loops do the work that is timed: every row of the read loops adds up the words, and
// the multiply loops give the same value for the same rounds.
#include "kernels/probe/probe.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

TEST(ProbeTest, ReadLoopsSumTheWords) {
  constexpr size_t kWordsMax = 4096 / sizeof(uint64_t) * 8;
  constexpr size_t kBeyond = 512;  // prefetches look ahead
  alignas(64) static uint64_t words[kWordsMax + kBeyond];
  uint64_t seed = 1;
  for (uint64_t& word : words) word = seed = seed * 6364136223846793005u + 1442695040888963407u;
  for (const auto& row : runnable_rows(read_variants())) {
    for (const size_t bytes :
         {size_t{0}, size_t{512}, size_t{1536}, sizeof(uint64_t) * kWordsMax}) {
      const uint64_t* end = words + bytes / sizeof(uint64_t);
      const uint64_t wanted =
          std::accumulate(static_cast<const uint64_t*>(words), end, uint64_t{0});
      EXPECT_EQ(row.fn.plain(words, bytes), wanted) << row.name << " " << bytes;
      EXPECT_EQ(row.fn.prefetched(words, bytes), wanted) << row.name << " " << bytes;
    }
  }
}

TEST(ProbeTest, MultiplyLoopsDependOnTheRounds) {
  for (const auto& row : runnable_rows(int8_roof_variants())) {
    EXPECT_GT(row.fn.macs_per_round(), 0) << row.name;
    EXPECT_EQ(row.fn.run(3), row.fn.run(3)) << row.name;
    EXPECT_NE(row.fn.run(1), row.fn.run(2)) << row.name;
  }
}

}  // namespace
}  // namespace optima::kernels
