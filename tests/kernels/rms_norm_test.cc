// Tolerance: a variant rounds the factor, two products and nothing else: 3 eps relative to the
// reference, which rounds once.
#include "kernels/rms_norm/rms_norm.h"

#include <gtest/gtest.h>
#include <math.h>

#include <random>

#include "tests/kernels/goldens.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

constexpr double kEps = 6e-8;

TEST(RmsNorm, ReferenceMatchesNumpy) {
  const Goldens goldens;
  const std::vector<float> x = goldens.floats("rms_norm.x");
  const std::vector<float> weight = goldens.floats("rms_norm.weight");
  std::vector<float> out(x.size());
  kRmsNormReference({x.data(), 11, weight.data(), out.data(), 11, 11, 1e-5f}, 0, 3);
  expect_close(out, goldens.doubles("rms_norm.out"), 2 * kEps, 0);
  kRmsNormReference({x.data(), 11, nullptr, out.data(), 11, 11, 1e-5f}, 0, 3);
  expect_close(out, goldens.doubles("rms_norm.unit"), 2 * kEps, 0);
}

struct Rows {
  int64_t rows;
  int64_t width;
  int64_t stride;
};

std::vector<float> norm(RmsNormFn fn, const Rows& rows, const std::vector<float>& x,
                        const std::vector<float>& weight) {
  std::vector<float> out(x.size(), 5.0f);
  fn({x.data(), rows.stride, weight.data(), out.data(), rows.stride, rows.width, 1e-6f}, 0,
     rows.rows);
  return out;
}

TEST(RmsNorm, VariantsMatchReference) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const int64_t width : {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 97, 576, 1009}) {
    const Rows rows = {3, width, width + 3};
    std::vector<float> x(static_cast<size_t>(3 * rows.stride));
    std::vector<float> weight(static_cast<size_t>(width));
    for (float& value : x) value = 10 * normal(random);
    for (float& value : weight) value = normal(random);
    const std::vector<float> want = norm(kRmsNormReference, rows, x, weight);
    for (const auto& row : runnable_rows(rms_norm_variants())) {
      const std::vector<float> got = norm(row.fn, rows, x, weight);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 3 * kEps * fabs(want[i])) << row.name << " width " << width;
      }
    }
  }
}

// No weight is a weight of ones, to the bit.
TEST(RmsNorm, WithoutWeight) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const int64_t width : {1, 7, 8, 9, 24, 64, 80, 97, 256}) {
    std::vector<float> x(static_cast<size_t>(3 * width));
    for (float& value : x) value = normal(random);
    const std::vector<float> ones(static_cast<size_t>(width), 1.0f);
    auto rows = runnable_rows(rms_norm_variants());
    rows.push_back({"rms_norm_ref", kIsaNone, kRmsNormReference});
    for (const auto& row : rows) {
      std::vector<float> out = x;  // in place
      row.fn({out.data(), width, nullptr, out.data(), width, width, 1e-6f}, 0, 3);
      ASSERT_EQ(out, norm(row.fn, {3, width, width}, x, ones)) << row.name << " width " << width;
    }
  }
}

TEST(RmsNorm, InPlaceAndRowRange) {
  std::vector<float> weight(13, 2.0f);
  for (const auto& row : runnable_rows(rms_norm_variants())) {
    std::vector<float> x(3 * 13, 3.0f);
    row.fn({x.data(), 13, weight.data(), x.data(), 13, 13, 0.0f}, 1, 2);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_FLOAT_EQ(x[i], i / 13 == 1 ? 2.0f : 3.0f) << row.name;
    }
    row.fn({x.data(), 13, weight.data(), x.data(), 13, 13, 0.0f}, 1, 1);  // no rows
  }
}

TEST(RmsNorm, ZeroNanInfinityAndHugeRows) {
  const std::vector<float> weight(9, 1.0f);
  const Rows rows = {4, 9, 9};
  std::vector<float> x(36, 0.0f);
  std::fill_n(x.begin() + 9, 9, 1.0f);
  x[10] = NAN;
  std::fill_n(x.begin() + 18, 9, 1.0f);
  x[19] = INFINITY;
  std::fill_n(x.begin() + 27, 9, 1e30f);  // squares overflow fp32
  for (const auto& row : runnable_rows(rms_norm_variants())) {
    const std::vector<float> got = norm(row.fn, rows, x, weight);
    for (size_t i = 0; i < 9; ++i) {
      ASSERT_EQ(got[i], 0.0f) << row.name;
      ASSERT_TRUE(isnan(got[9 + i])) << row.name;
      ASSERT_TRUE(i == 1 ? isnan(got[18 + i]) : got[18 + i] == 0.0f) << row.name;
      ASSERT_NEAR(got[27 + i], 1.0f, 1e-6f) << row.name;
    }
  }
}

}  // namespace
}  // namespace optima::kernels
