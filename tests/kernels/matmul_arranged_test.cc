// What products of many activation rows do to weights that they bring to another form: the real
// rows that this CPU has and the simulated ones.

#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/matmul_testing.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

using namespace optima::kernels::testing;
using enum Product::Form;

constexpr int64_t kRows = 65;  // enough for each of them to arrange

std::vector<Variant<MatmulKernel>> arranging_rows() {
  std::vector<Variant<MatmulKernel>> rows;
  for (const auto& row : arranged_simulations()) rows.push_back(row);
  for (const auto& row : runnable_rows(matmul_variants())) {
    if (row.fn.arrange_rows != nullptr) rows.push_back(row);
  }
  return rows;
}

Product random_product(WeightType type, int64_t n, int64_t k) {
  std::mt19937 rng(static_cast<uint32_t>(type) + 17);
  Product p(type, kRows, n, k);
  p.weights = random_weights(type, n, k, rng);
  p.x = normal_activations(kRows, k, rng);
  p.quantise(best(quantise_rows_variants(), kIsaNone).fn);
  return p;
}

std::vector<Product::Form> forms_of(const Variant<MatmulKernel>& row, const Product& p) {
  if (row.fn.panels_bytes(p.type, p.n, p.k) == 0) return {file};
  return {file, panels};
}

float at(const Product& p, const std::vector<float>& out, int64_t m, int64_t n) {
  return out[static_cast<size_t>(m * (p.n + Product::kGuard) + n)];
}

class MatmulArrangedTest : public ::testing::TestWithParam<WeightType> {};

// Gaussian activations in int8 cost 0.55 % of a product and in bfloat16 0.17; weights in a coarse
// form, whose random codes and scales of either sign are worse than a model's, add 0.6 at most.
TEST_P(MatmulArrangedTest, WhatIsLostStaysSmall) {
  for (const auto& row : arranging_rows()) {
    const Product p = random_product(GetParam(), 64, 1024);
    const std::vector<float> want = p.run(kMatmulReference, 0);
    for (const auto form : forms_of(row, p)) {
      const double error = relative_error(p.run(row.fn, 0, form), want);
      EXPECT_LT(error, wide_weights(row) == WideWeights::rounded ? 0.003 : 0.009) << row.name;
      EXPECT_GT(error, wide_weights(row) == WideWeights::rounded ? 0.001 : 0.005) << row.name;
    }
  }
}

// What is not finite in a weight row makes one output of each activation row so, and no other.
TEST_P(MatmulArrangedTest, NonFiniteWeightsStayInTheirRow) {
  const int scale_at = half_offsets(GetParam()).scale;
  if (scale_at < 0) return;  // no number of MXFP4 is infinite
  for (const auto& row : arranging_rows()) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Product p = random_product(GetParam(), 35, 1024);
      const WeightTypeInfo& info = info_of(p.type);
      const int64_t block = 1024 / info.block_values / 2;
      store_half(p.weights.data() + row_bytes(info, p.k) * 20 + block * info.block_bytes + scale_at,
                 bad);
      for (const auto form : forms_of(row, p)) {
        const std::vector<float> got = p.run(row.fn, 0, form);
        for (int64_t i = 0; i < p.m * p.n; ++i) {
          ASSERT_EQ(std::isfinite(at(p, got, i / p.n, i % p.n)), i % p.n != 20)
              << row.name << " output " << i;
        }
      }
    }
  }
}

// Groups of weights that are all zero, at the beginning, in between and in whole rows, and groups
// that are smaller than others by orders of magnitude.
TEST_P(MatmulArrangedTest, GroupsOfZerosAndOfFarSmallerWeights) {
  const WeightTypeInfo& info = info_of(GetParam());
  const HalfOffsets halves = half_offsets(GetParam());
  if (halves.scale < 0) return;
  for (const auto& row : arranging_rows()) {
    Product p = random_product(GetParam(), 40, 2304);
    const int64_t blocks = p.k / info.block_values;
    for (int64_t n = 0; n < p.n; ++n) {
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t group = b * info.block_values / 256 + n;
        const float scale = n == 33 || group % 3 == 0 ? 0.0f : group % 3 == 1 ? 1.0f : 0x1p-13f;
        uint8_t* block = p.weights.data() + (n * blocks + b) * info.block_bytes;
        store_half(block + halves.scale, scale);
        if (halves.min >= 0) store_half(block + halves.min, scale);
      }
    }
    const std::vector<float> want = p.run(kMatmulReference, 0);
    for (const auto form : forms_of(row, p)) {
      const std::vector<float> got = p.run(row.fn, 0, form);
      EXPECT_LT(relative_error(got, want), 0.009) << row.name;
      for (int64_t m = 0; m < p.m; ++m) EXPECT_NEAR(at(p, got, m, 33), 0, 1e-20) << row.name;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<WeightType>& type) {
  return info_of(type.param).name;
}
std::vector<WeightType> quantised_types() {
  std::vector<WeightType> types(std::begin(kAllTypes), std::end(kAllTypes));
  std::erase_if(types, [](WeightType type) { return !uses_quantised_activations(type); });
  return types;
}
INSTANTIATE_TEST_SUITE_P(AllTypes, MatmulArrangedTest, ::testing::ValuesIn(quantised_types()),
                         name_of);

}  // namespace
}  // namespace optima::kernels
