// Every variant of the matrix product and of activation quantisation against the references.

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/matmul_testing.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

using namespace optima::kernels::testing;

// All rows that can run, the simulated ones too.
std::vector<Variant<MatmulKernel>> rows_of(WeightType type) {
  std::vector<Variant<MatmulKernel>> rows = simulated_rows(type);
  for (const auto& row : runnable_rows(matmul_variants())) rows.push_back(row);
  return rows;
}

class MatmulTest : public ::testing::TestWithParam<WeightType> {};

TEST_P(MatmulTest, SmallShapesEqualTheReference) {
  for (const auto& row : runnable_rows(matmul_variants())) {
    for (const int64_t k : {32, 64, 96, 256, 512, 576}) {
      if (k % info_of(GetParam()).block_values != 0) continue;
      for (const int64_t n : {1, 7, 8, 9, 17}) {
        for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33}) {
          check(row, GetParam(), m, n, k);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Beyond one stretch of k, one group of rows and one block of activation rows (at most 126).
TEST_P(MatmulTest, LargeShapesEqualTheReference) {
  for (const auto& row : runnable_rows(matmul_variants())) {
    check(row, GetParam(), 1, 130, 2560);
    check(row, GetParam(), 131, 70, 2560);
    check(row, GetParam(), 5, 33, 1536);
  }
}

constexpr WeightType kFloatTypes[] = {WeightType::f32, WeightType::f16, WeightType::bf16};

// Activation rows: none, few, and from 17 on many (kFloatFewRows), in blocks of at most 48.
TEST(MatmulFloatTypes, AnyDepth) {
  for (const WeightType type : kFloatTypes) {
    for (const auto& row : rows_of(type)) {
      for (const int64_t k : {1, 7, 9, 31, 45, 261, 1025}) {
        for (const int64_t m : {0, 1, 3, 4, 6, 11, 16, 17, 50}) {
          check(row, type, m, 19, k);
          if (HasFatalFailure()) return;
        }
      }
      check(row, type, 100, 167, 517);  // beyond one group of weight rows
    }
  }
}

// Of the same numbers with activations that no format but float holds.
TEST(MatmulFloatTypes, ProductsAreThoseOfFloats) {
  for (const WeightType type : kFloatTypes) {
    for (const auto& row : rows_of(type)) {
      for (const int64_t m : {1, 3, 8, 40}) {
        std::mt19937 rng(5);
        Product p(type, m, 33, 700);
        p.weights = random_weights(type, p.n, p.k, rng);
        p.x = normal_activations(m, p.k, rng);
        const std::vector<float> want = p.run(kMatmulReference, 0);
        // A bfloat16 is within 1/256 of a number; in RMS that is 0.17 %. Of F32 and F16 weights
        // those rows are the ones of floats.
        const bool rounds =
            type == WeightType::bf16 && m == 40 && std::string(row.name).ends_with("bf16");
        const double error = relative_error(p.run(row.fn, 0), want);
        EXPECT_LT(error, rounds ? 2e-3 : 1e-6) << row.name << " m=" << m;
        EXPECT_GE(error, rounds ? 1e-3 : 0) << row.name << " m=" << m;
      }
    }
  }
}

// What is not finite in a weight row makes one output of each activation row so, and no other.
TEST(MatmulFloatTypes, NonFiniteWeightsStayInTheirRow) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const WeightType type : kFloatTypes) {
    for (const auto& row : rows_of(type)) {
      for (const int64_t m : {1, 5, 17}) {
        std::mt19937 rng(3);
        Product p(type, m, 21, 75);
        p.weights = random_weights(type, p.n, p.k, rng);
        p.x = exact_activations(m, p.k, rng);
        const uint32_t bits = float_bits(kInfinity);
        const uint16_t two =
            type == WeightType::f16 ? float_to_half(kInfinity) : float_to_bf16(kInfinity);
        uint8_t* at = p.weights.data() + row_bytes(info_of(type), p.k) * 11 +
                      static_cast<size_t>(info_of(type).block_bytes) * 74;
        type == WeightType::f32 ? memcpy(at, &bits, 4) : memcpy(at, &two, 2);
        const std::vector<float> got = p.run(row.fn, 0);
        for (int64_t i = 0; i < m * p.n; ++i) {
          const auto out = static_cast<size_t>(i / p.n * (p.n + Product::kGuard) + i % p.n);
          EXPECT_EQ(std::isfinite(got[out]), i % p.n != 11) << row.name << " output " << i;
        }
      }
    }
  }
}

// Rounded activations: Gaussian values per 32 in int8 have a relative error of about 0.55 %.
TEST_P(MatmulTest, RoundingOfActivationsStaysSmall) {
  std::mt19937 rng(7);
  Product p(GetParam(), 8, 64, 512);
  p.weights = random_weights(p.type, p.n, p.k, rng);
  p.x = normal_activations(p.m, p.k, rng);
  const std::vector<float> want = p.run(kMatmulReference, 0);
  for (const auto& quantise : runnable_rows(quantise_rows_variants())) {
    p.quantise(quantise.fn);
    for (const auto& row : runnable_rows(matmul_variants())) {
      EXPECT_LT(relative_error(p.run(row.fn, 0), want), 0.008)
          << row.name << " after " << quantise.name;
    }
  }
}

// A NaN or infinity in one row makes that row NaN and no other.
TEST_P(MatmulTest, NonFiniteActivationsStayInTheirRow) {
  std::mt19937 rng(11);
  for (const auto& quantise : runnable_rows(quantise_rows_variants())) {
    for (const auto& row : rows_of(GetParam())) {
      for (const int64_t m : {3, 7, 17}) {
        for (const float bad :
             {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
          Product p(GetParam(), m, 9, 512);
          p.weights = random_weights(p.type, p.n, p.k, rng);
          p.x = exact_activations(m, p.k, rng);
          p.x[static_cast<size_t>(p.k + 77)] = bad;
          p.quantise(quantise.fn);
          const std::vector<float> got = p.run(row.fn, 0);
          for (int64_t i = 0; i < m * p.n; ++i) {
            const auto at = static_cast<size_t>(i / p.n * (p.n + Product::kGuard) + i % p.n);
            EXPECT_EQ(std::isfinite(got[at]), i / p.n != 1) << row.name << " output " << i;
          }
        }
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<WeightType>& type) {
  return info_of(type.param).name;
}
INSTANTIATE_TEST_SUITE_P(AllTypes, MatmulTest, ::testing::ValuesIn(kAllTypes), name_of);

TEST(QuantiseRows, CodesAreNearestAndSumsExact) {
  constexpr int64_t kRows = 3;
  for (const auto& row : runnable_rows(quantise_rows_variants())) {
    for (const int64_t k : {1, 31, 32, 100, 576}) {
      std::mt19937 rng(static_cast<uint32_t>(k));
      Product p(WeightType::q4_0, kRows, 1, k);
      p.x = normal_activations(kRows, k, rng);
      p.quantise(row.fn);
      ASSERT_EQ(p.xq.k_padded, (k + 31) / 32 * 32);
      const int64_t blocks = p.xq.k_padded / 32;
      for (int64_t b = 0; b < kRows * blocks; ++b) {
        float largest = 0;
        double sum[2] = {0, 0};
        int pairs[2][2] = {{0, 0}, {0, 0}};
        for (int64_t i = 0; i < 32; ++i) {
          const int64_t at = b % blocks * 32 + i;
          const float x = at < k ? p.x[static_cast<size_t>(b / blocks * k + at)] : 0.0f;
          const int q = p.xq.q[b * 32 + i];
          largest = std::max(largest, std::abs(x));
          sum[i / 16] += x;
          pairs[i / 16][i % 4 / 2] += q;
          EXPECT_LE(std::abs(q), 127);
          EXPECT_NEAR(x, static_cast<float>(q) * p.xq.scale[b], p.xq.scale[b] * 0.50001f);
        }
        EXPECT_FLOAT_EQ(p.xq.scale[b], largest / 127.0f) << row.name;
        EXPECT_NEAR(p.xq.sum_x[b], sum[0] + sum[1], 32e-7 * 32 * largest);
        for (int half = 0; half < 2; ++half) {
          EXPECT_NEAR(p.xq.sum_x16[2 * b + half], sum[half], 16e-7 * 16 * largest);
          for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(p.xq.pairs16[4 * b + 2 * half + i], pairs[half][i]) << row.name;
          }
        }
        for (int i = 0; i < 2; ++i) EXPECT_EQ(p.xq.pairs[2 * b + i], pairs[0][i] + pairs[1][i]);
      }
    }
  }
}

// Blocks of zeros, of tiny and of huge values.
TEST(QuantiseRows, Extremes) {
  for (const auto& row : runnable_rows(quantise_rows_variants())) {
    for (const float value : {0.0f, -0.0f, 1e-45f, 1e-38f, 1e-31f, 1e-29f, 1e30f, 3.4e38f}) {
      Product p(WeightType::q4_0, 1, 1, 32);
      p.x.assign(32, value);
      p.quantise(row.fn);
      for (int i = 0; i < 32; ++i) {
        const float back = static_cast<float>(p.xq.q[i]) * p.xq.scale[0];
        EXPECT_NEAR(back, value, std::max(1e-30f, std::abs(value) * 1e-6f)) << row.name;
      }
    }
  }
}

TEST(MatmulVariants, EndWithARowForAnyCpu) {
  EXPECT_EQ(best(matmul_variants(), kIsaNone).isa, kIsaNone);
  EXPECT_EQ(best(quantise_rows_variants(), kIsaNone).isa, kIsaNone);
}

}  // namespace
}  // namespace optima::kernels
