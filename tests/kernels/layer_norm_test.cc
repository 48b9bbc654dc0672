// Tolerance: a variant rounds the normalised value, its product with the weight and the sum with
// the bias, each once; the reference rounds once. Where product and bias cancel, what is left of
// them is small but the roundings are those of the product.
#include "kernels/layer_norm/layer_norm.h"

#include <gtest/gtest.h>
#include <math.h>

#include <random>

#include "tests/kernels/goldens.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

constexpr float kEps = 6e-8f;

std::vector<Variant<LayerNormFn>> all_rows() {
  auto rows = runnable_rows(layer_norm_variants());
  rows.push_back({"layer_norm_ref", kIsaNone, kLayerNormReference});
  return rows;
}

TEST(LayerNorm, MatchesTorch) {
  const Goldens goldens;
  const std::vector<float> x = goldens.floats("layer_norm.x");
  const std::vector<float> weight = goldens.floats("layer_norm.weight");
  const std::vector<float> bias = goldens.floats("layer_norm.bias");
  for (const auto& row : all_rows()) {
    SCOPED_TRACE(row.name);
    std::vector<float> out(x.size());
    row.fn({x.data(), 13, nullptr, nullptr, out.data(), 13, 13, 1e-5f}, 0, 3);
    expect_close(out, goldens.doubles("layer_norm.unit"), 2e-7, 0);
    row.fn({x.data(), 13, weight.data(), nullptr, out.data(), 13, 13, 1e-5f}, 0, 3);
    expect_close(out, goldens.doubles("layer_norm.scaled"), 2e-7, 0);
    row.fn({x.data(), 13, weight.data(), bias.data(), out.data(), 13, 13, 1e-5f}, 0, 3);
    expect_close(out, goldens.doubles("layer_norm.out"), 2e-7, 4e-7);
  }
}

struct Problem {
  int64_t width;
  int64_t stride;
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<float> bias;
};

Problem problem(int64_t width, float mean, float spread) {
  std::mt19937 random(static_cast<uint32_t>(width));
  std::normal_distribution<float> normal;
  Problem made = {width, width + 3, {}, {}, {}};
  for (int64_t i = 0; i < 3 * made.stride; ++i) made.x.push_back(mean + spread * normal(random));
  for (int64_t i = 0; i < width; ++i) {
    made.weight.push_back(normal(random));
    made.bias.push_back(normal(random));
  }
  return made;
}

std::vector<float> norm(LayerNormFn fn, const Problem& of, const float* weight, const float* bias) {
  std::vector<float> out(of.x.size(), 5.0f);
  fn({of.x.data(), of.stride, weight, bias, out.data(), of.stride, of.width, 1e-6f}, 0, 3);
  return out;
}

// A mean of 1e4 against a spread of 1 leaves no digit of the variance in fp32.
TEST(LayerNorm, VariantsMatchReference) {
  for (const int64_t width : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 64, 97, 576, 1009}) {
    for (const float mean : {0.0f, 3.0f, 1e4f}) {
      const Problem of = problem(width, mean, 1);
      for (const float* weight : {static_cast<const float*>(nullptr), of.weight.data()}) {
        for (const float* bias : {static_cast<const float*>(nullptr), of.bias.data()}) {
          const std::vector<float> product = norm(kLayerNormReference, of, weight, nullptr);
          const std::vector<float> want = norm(kLayerNormReference, of, weight, bias);
          for (const auto& row : runnable_rows(layer_norm_variants())) {
            const std::vector<float> got = norm(row.fn, of, weight, bias);
            for (size_t i = 0; i < got.size(); ++i) {
              ASSERT_NEAR(got[i], want[i], 3 * kEps * (fabsf(product[i]) + fabsf(want[i])))
                  << row.name << " width " << width << " mean " << mean;
            }
          }
        }
      }
    }
  }
}

TEST(LayerNorm, InPlaceAndRowRange) {
  for (const auto& row : all_rows()) {
    const Problem of = problem(13, 1, 2);
    const std::vector<float> want = norm(kLayerNormReference, of, of.weight.data(), of.bias.data());
    std::vector<float> x = of.x;
    row.fn({x.data(), of.stride, of.weight.data(), of.bias.data(), x.data(), of.stride, 13, 1e-6f},
           1, 2);
    for (size_t i = 0; i < x.size(); ++i) {
      const bool normed = i >= 16 && i < 29;
      ASSERT_NEAR(x[i], normed ? want[i] : of.x[i], normed ? 1e-6f : 0) << row.name;
    }
    row.fn({x.data(), 16, nullptr, nullptr, x.data(), 16, 13, 1e-6f}, 1, 1);  // no rows
  }
}

// A constant row has no spread: it is the bias. NaN and infinity spoil their whole row, as the
// mean says; squares that overflow fp32 do not.
TEST(LayerNorm, ConstantNanInfinityAndHugeRows) {
  const std::vector<float> bias(19, 0.25f);
  std::vector<float> x(4 * 19, 0.1f);
  x[19 + 5] = NAN;
  x[38 + 18] = INFINITY;
  for (size_t i = 57; i < 76; ++i) x[i] = i % 2 == 0 ? 1e30f : -1e30f;
  for (const auto& row : all_rows()) {
    std::vector<float> out(x.size());
    row.fn({x.data(), 19, nullptr, bias.data(), out.data(), 19, 19, 1e-5f}, 0, 4);
    for (size_t i = 0; i < 19; ++i) {
      ASSERT_EQ(out[i], 0.25f) << row.name;
      ASSERT_TRUE(isnan(out[19 + i])) << row.name;
      ASSERT_TRUE(isnan(out[38 + i])) << row.name;
      ASSERT_NEAR(fabsf(out[57 + i] - 0.25f), 1.0f, 0.06f) << row.name;
    }
  }
}

}  // namespace
}  // namespace optima::kernels
