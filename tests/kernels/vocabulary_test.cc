// Maxima and numbers of NaN are exact. A weight is within 2e-7 of exp of its rounded argument,
// which itself is off by two roundings (difference, quotient): 1.2e-7 of an argument of up to 88 in
// all.
#include "kernels/vocabulary/vocabulary.h"

#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <random>

#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

const int64_t kSizes[] = {0,  1,   2,   7,   8,   9,   15,  16,  17,  31,   33,
                          97, 128, 255, 256, 257, 511, 512, 521, 769, 1009, 5003};

std::vector<float> logits_of(int64_t count, uint32_t seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

size_t blocks_of(int64_t count) {
  return static_cast<size_t>((count + kVocabularyBlock - 1) / kVocabularyBlock);
}

std::vector<Variant<VocabularyKernel>> all_rows() {
  auto rows = runnable_rows(vocabulary_variants());
  rows.push_back({"vocabulary_ref", kIsaNone, kVocabularyReference});
  return rows;
}

// What the contract says, block by block.
void expect_maxima(const std::vector<float>& x, const Variant<VocabularyKernel>& row) {
  const auto count = static_cast<int64_t>(x.size());
  std::vector<float> want(blocks_of(count), -INFINITY);
  int64_t nans = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    float& largest = want[i / kVocabularyBlock];
    if (isnan(x[i])) ++nans;
    if (x[i] > largest) largest = x[i];
  }
  // One before and one behind: the logits are not aligned, and what is around them stays.
  std::vector<float> shifted(x.size() + 2, NAN);
  std::copy(x.begin(), x.end(), shifted.begin() + 1);
  std::vector<float> maxima(want.size() + 1, 7.0f);
  EXPECT_EQ(row.fn.maxima(shifted.data() + 1, count, maxima.data()), nans) << row.name;
  EXPECT_EQ(maxima.back(), 7.0f) << row.name;
  maxima.pop_back();
  EXPECT_EQ(maxima, want) << row.name << " size " << count;
}

TEST(Vocabulary, MaximaAreExact) {
  for (const auto& row : all_rows()) {
    for (const int64_t size : kSizes) {
      const std::vector<float> x = logits_of(size, 1, 8);
      expect_maxima(x, row);
      for (const float odd : {NAN, INFINITY, -INFINITY}) {
        if (size == 0) continue;
        for (const int64_t step : {int64_t{1}, int64_t{3}, size}) {
          std::vector<float> y = x;
          for (int64_t i = size - 1; i >= 0; i -= step) y[static_cast<size_t>(i)] = odd;
          expect_maxima(y, row);
          y.front() = -INFINITY;
          expect_maxima(y, row);
        }
      }
    }
  }
}

TEST(Vocabulary, InfinitiesOfBothSignsAreNoNan) {
  for (const auto& row : all_rows()) {
    std::vector<float> x(600, 1.0f);
    x[3] = INFINITY;
    x[3 + 64] = -INFINITY;
    x[400] = NAN;
    expect_maxima(x, row);
  }
}

double exact_weight(float x, float highest, float temperature) {
  return exp((static_cast<double>(x) - static_cast<double>(highest)) / temperature);
}

double slack(float x, float highest, float temperature) {
  return 2e-7 + 1.2e-7 * static_cast<double>((highest - x) / temperature);
}

TEST(Vocabulary, WeightsAndMassesMatchTheFormula) {
  for (const auto& row : all_rows()) {
    for (const int64_t size : kSizes) {
      for (const float temperature : {1.0f, 0.8f, 0.03f, 1.7f, 100.0f}) {
        const std::vector<float> x = logits_of(size + 1, 2, 6);
        const float highest = *std::max_element(x.begin(), x.end());
        std::vector<float> out(x.size() + 1, 7.0f);
        row.fn.weights(x.data() + 1, size, highest, temperature, out.data());
        std::vector<double> sums(blocks_of(size), 0), errors(sums);
        for (int64_t i = 0; i < size; ++i) {
          const float logit = x[static_cast<size_t>(i) + 1];
          const double want = exact_weight(logit, highest, temperature);
          const double error = slack(logit, highest, temperature) * want + 2e-38;
          ASSERT_NEAR(out[static_cast<size_t>(i)], want, error) << row.name << " " << logit;
          sums[static_cast<size_t>(i / kVocabularyBlock)] += want;
          errors[static_cast<size_t>(i / kVocabularyBlock)] += error;
        }
        EXPECT_EQ(out[static_cast<size_t>(size)], 7.0f) << row.name << " wrote behind the end";
        std::vector<double> masses(sums.size() + 1, 7.0);
        row.fn.masses(x.data() + 1, size, highest, temperature, masses.data());
        EXPECT_EQ(masses.back(), 7.0) << row.name;
        for (size_t b = 0; b < sums.size(); ++b)
          ASSERT_NEAR(masses[b], sums[b], errors[b]) << row.name << " size " << size;
      }
    }
  }
}

TEST(Vocabulary, WeightsAreAccurateOverTheirRange) {
  std::vector<float> x;
  for (float value = 0; value > -87; value -= 0.00137f) x.push_back(value);
  std::vector<float> out(x.size());
  for (const auto& row : all_rows()) {
    row.fn.weights(x.data(), static_cast<int64_t>(x.size()), 0, 1, out.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, fabs(out[i] / exp(static_cast<double>(x[i])) - 1));
    EXPECT_LT(worst, 2e-7) << row.name;
  }
}

// In place, as the sampler weighs its candidates.
TEST(Vocabulary, Extremes) {
  for (const auto& row : all_rows()) {
    for (const float temperature : {1.0f, 0.5f}) {
      std::vector<float> x = {3, NAN, -INFINITY, -1e30f, -200, 3, -3.4e38f};
      std::vector<double> mass(1);
      row.fn.masses(x.data(), 7, 3, temperature, mass.data());
      EXPECT_EQ(mass[0], 2.0) << row.name;
      row.fn.weights(x.data(), 7, 3, temperature, x.data());
      EXPECT_EQ(x, (std::vector<float>{1, 0, 0, 0, 0, 1, 0})) << row.name;
    }
    // The least temperature that sampling uses: all but the largest vanish.
    std::vector<float> x = {1, 3, 2.9999998f};
    row.fn.weights(x.data(), 3, 3, 1e-20f, x.data());
    EXPECT_EQ(x, (std::vector<float>{0, 1, 0})) << row.name;
  }
}

// Many small terms beside a large one: added up in float they would be lost.
TEST(Vocabulary, MassesAreSummedInDouble) {
  for (const auto& row : all_rows()) {
    std::vector<float> x(kVocabularyBlock, -18.0f);
    x[0] = 0;
    double mass = 0;
    row.fn.masses(x.data(), kVocabularyBlock, 0, 1, &mass);
    EXPECT_NEAR(mass - 1, (kVocabularyBlock - 1) * exp(-18.0), 1e-12) << row.name;
  }
}

}  // namespace
}  // namespace optima::kernels
