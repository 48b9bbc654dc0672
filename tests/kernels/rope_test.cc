// Tolerance: two products and a sum in fp32, each rounded: 2 eps of |x| + |y|, here below 8.
#include "kernels/rope/rope.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/goldens.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

TEST(Rope, TableAndReferenceMatchNumpy) {
  const Goldens goldens;
  const std::vector<int32_t> positions(goldens.doubles("rope.positions").begin(),
                                       goldens.doubles("rope.positions").end());
  std::vector<float> table(2 * 8);
  rope_table(positions.data(), 2, goldens.doubles("rope.inverse_frequency").data(), 8, 1.0,
             table.data());
  for (size_t i = 0; i < 8; ++i) {
    // Frequencies are kept to 9 digits, so an angle of 1000 is good to 1e-6.
    EXPECT_NEAR(table[2 * i], goldens.doubles("rope.cos")[i], 2e-6);
    EXPECT_NEAR(table[2 * i + 1], goldens.doubles("rope.sin")[i], 2e-6);
  }
  const char* names[] = {"rope.adjacent", "rope.halves"};
  for (const RopePairs pairs : {RopePairs::adjacent, RopePairs::halves}) {
    std::vector<float> x = goldens.floats("rope.x");
    kRopeReference({x.data(), 20, 2, 10, 8, table.data(), pairs}, 0, 2);
    expect_close(x, goldens.doubles(names[static_cast<int>(pairs)]), 0, 1e-5);
  }
}

TEST(Rope, TableScalesByMagnitude) {
  const int32_t position = 7;
  const double frequency = 0.25;
  float table[2];
  rope_table(&position, 1, &frequency, 2, 1.5, table);
  EXPECT_FLOAT_EQ(table[0], static_cast<float>(1.5 * std::cos(1.75)));
  EXPECT_FLOAT_EQ(table[1], static_cast<float>(1.5 * std::sin(1.75)));
}

void check(int64_t rotary_dim, int64_t head_dim, RopePairs pairs) {
  const int64_t heads = 3;
  const int64_t tokens = 3;
  const int64_t stride = heads * head_dim + 5;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> x(static_cast<size_t>(tokens * stride));
  for (float& value : x) value = uniform(random);
  std::vector<float> table(static_cast<size_t>(tokens * rotary_dim));
  for (size_t i = 0; i < table.size(); i += 2) {
    const float angle = uniform(random);
    table[i] = cosf(angle);
    table[i + 1] = sinf(angle);
  }
  std::vector<float> want = x;
  const auto args = [&](std::vector<float>& values) -> RopeArgs {
    return {values.data(), stride, heads, head_dim, rotary_dim, table.data(), pairs};
  };
  kRopeReference(args(want), 1, 3);
  for (const auto& row : runnable_rows(rope_variants())) {
    std::vector<float> got = x;
    row.fn(args(got), 1, 3);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-6f) << row.name << " rotary " << rotary_dim << " at " << i;
    }
  }
}

TEST(Rope, VariantsMatchReference) {
  for (const RopePairs pairs : {RopePairs::adjacent, RopePairs::halves}) {
    for (const int64_t rotary : {0, 2, 4, 6, 8, 10, 14, 16, 18, 30, 32, 34, 64, 80, 128}) {
      check(rotary, rotary, pairs);
      check(rotary, rotary + 7, pairs);  // misaligned heads, part of each unrotated
    }
  }
}

}  // namespace
}  // namespace optima::kernels
