// What may be drawn and how likely it is, against transformers' logits processors and numpy
// (tests/goldens/make_sampling.py), and the selection against full sorts on large vocabularies.
#include "sampling/truncation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "sampling/exponential.h"
#include "sampling/penalties.h"

namespace optima::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct GoldenCase {
  std::vector<float> logits;
  std::vector<int32_t> history;
  Truncation truncation;
  Penalties penalties;
  int32_t window = 0;
  std::vector<std::pair<int32_t, float>> bias;
  std::vector<std::pair<int32_t, double>> kept;
};

float read_float(std::istream& in) {
  std::string word;
  in >> word;
  return std::stof(word);
}

std::vector<GoldenCase> read_cases() {
  std::ifstream in(OPTIMA_SOURCE_DIR "/tests/goldens/sampling/chain.txt");
  std::vector<GoldenCase> cases;
  GoldenCase current;
  std::string word;
  while (in >> word) {
    size_t count = 0;
    if (word != "case") in >> count;
    if (word == "logits") {
      current.logits.resize(count);
      for (float& logit : current.logits) logit = read_float(in);
    } else if (word == "history") {
      current.history.resize(count);
      for (int32_t& token : current.history) in >> token;
    } else if (word == "case") {
      Truncation& truncation = current.truncation;
      in >> truncation.temperature >> truncation.top_k >> truncation.typical_p >>
          truncation.top_p >> truncation.min_p >> current.penalties.repetition >>
          current.penalties.presence >> current.penalties.frequency >> current.window;
    } else if (word == "bias") {
      current.bias.resize(count);
      for (auto& [token, value] : current.bias) {
        in >> token;
        value = read_float(in);
      }
    } else {
      current.kept.resize(count);
      for (auto& [token, probability] : current.kept) in >> token >> probability;
      cases.push_back(current);
    }
  }
  return cases;
}

double weight_sum(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.weight; });
}

TEST(Chain, KeepsWhatTransformersKeepsWithItsProbabilities) {
  const std::vector<GoldenCase> cases = read_cases();
  ASSERT_GT(cases.size(), 80u);
  std::vector<Candidate> candidates;
  std::vector<int32_t> counts;
  for (size_t index = 0; index < cases.size(); ++index) {
    GoldenCase golden = cases[index];
    SCOPED_TRACE("case " + std::to_string(index));
    apply_bias(golden.bias, golden.logits);
    std::span<const int32_t> recent = golden.history;
    if (golden.window > 0) recent = recent.last(static_cast<size_t>(golden.window));
    apply_penalties(golden.penalties, recent, counts, golden.logits);
    select_candidates(golden.truncation, golden.logits, extent_of(golden.logits).highest,
                      candidates);
    ASSERT_EQ(candidates.size(), golden.kept.size());
    const double sum = weight_sum(candidates);
    for (size_t i = 0; i < candidates.size(); ++i) {
      ASSERT_EQ(candidates[i].token, golden.kept[i].first);
      // Logits are floats: a rounding at 32 is 2e-6, at temperature 0.3 three times that.
      ASSERT_NEAR(candidates[i].weight / sum, golden.kept[i].second,
                  1e-5 * golden.kept[i].second + 1e-9);
    }
  }
}

// Peaked as a model's logits are, with many equal values.
std::vector<float> model_like(size_t vocabulary, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) logit = std::round(normal(random) * 64) / 64;
  return logits;
}

std::vector<Candidate> sorted_all(const std::vector<float>& logits) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i)
    all.push_back({static_cast<int32_t>(i), logits[i], exp_of_negative(logits[i] - highest)});
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  return all;
}

std::vector<int32_t> tokens_of(const std::vector<Candidate>& candidates, size_t count) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(candidates[i].token);
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

TEST(Selection, EqualsAFullSortWithTiesByToken) {
  std::vector<Candidate> candidates;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const std::vector<float> logits = model_like(30011, seed, 1.0f + static_cast<float>(seed));
    const std::vector<Candidate> all = sorted_all(logits);
    const float highest = all.front().logit;
    for (const int32_t k : {1, 2, 5, 40, 1000, 15000, 29000, 30010, 40000}) {
      select_candidates({.top_k = k}, logits, highest, candidates);
      const size_t count = std::min<size_t>(static_cast<size_t>(k), all.size());
      ASSERT_EQ(tokens_of(candidates, candidates.size()), tokens_of(all, count)) << k;
    }
    const double mass = weight_sum(all);
    for (const float p : {0.001f, 0.3f, 0.9f, 0.99f, 0.99999f}) {
      select_candidates({.top_p = p}, logits, highest, candidates);
      size_t count = 0;
      for (double sum = 0; sum < p * mass && count < all.size(); ++count) sum += all[count].weight;
      // The two sums are rounded in different orders: one token at the border may differ.
      ASSERT_NEAR(static_cast<double>(candidates.size()), static_cast<double>(count), 1) << p;
      ASSERT_EQ(tokens_of(candidates, candidates.size()), tokens_of(all, candidates.size()));
    }
    for (const float p : {1e-6f, 0.05f, 0.5f, 1.0f}) {
      select_candidates({.min_p = p}, logits, highest, candidates);
      const auto count = static_cast<size_t>(
          std::count_if(all.begin(), all.end(), [&](const Candidate& c) { return c.weight >= p; }));
      ASSERT_EQ(tokens_of(candidates, candidates.size()), tokens_of(all, count)) << p;
    }
  }
}

TEST(Selection, SurvivesExtremes) {
  std::vector<Candidate> candidates;
  std::vector<float> logits(1000, -kInfinity);
  logits[700] = -3;
  for (const Truncation& truncation :
       {Truncation{}, Truncation{.top_k = 50}, Truncation{.typical_p = 0.5f},
        Truncation{.top_p = 0.5f}, Truncation{.min_p = 0.5f}, Truncation{.temperature = 1e-38f},
        Truncation{.top_k = 7, .typical_p = 1e-7f, .top_p = 1e-7f, .min_p = 1}}) {
    select_candidates(truncation, logits, -3, candidates);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_EQ(candidates[0].token, 700);
    EXPECT_EQ(candidates[0].weight, 1.0f);
  }
  const std::vector<float> flat(1000, 2.5f);
  select_candidates({.top_k = 3}, flat, 2.5f, candidates);
  EXPECT_EQ(tokens_of(candidates, candidates.size()), (std::vector<int32_t>{0, 1, 2}));
  select_candidates({.top_p = 0.5f}, flat, 2.5f, candidates);
  EXPECT_EQ(candidates.size(), 500u);
  select_candidates({.typical_p = 0.25f}, flat, 2.5f, candidates);
  EXPECT_EQ(candidates.size(), 250u);
  select_candidates({.temperature = 1e-30f}, std::vector<float>{1, 3, 2}, 3, candidates);
  EXPECT_EQ(draw(candidates, 0.0), 1);
  EXPECT_EQ(draw(candidates, 0.999999), 1);
}

TEST(Draw, WalksTheCumulativeWeights) {
  const std::vector<Candidate> candidates = {{4, 0, 1}, {5, 0, 0}, {9, 0, 3}};
  EXPECT_EQ(draw(candidates, 0), 4);
  EXPECT_EQ(draw(candidates, 0.2499), 4);
  EXPECT_EQ(draw(candidates, 0.25), 9);
  EXPECT_EQ(draw(candidates, 0x1.fffffffffffffp-1), 9);
}

TEST(Exponential, IsAccurateOverItsRange) {
  double worst = 0;
  for (float x = 0; x > -87; x -= 0.00137f) {
    const double truth = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_of_negative(x) - truth) / truth);
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(exp_of_negative(0), 1.0f);
  EXPECT_EQ(exp_of_negative(-88), 0.0f);
  EXPECT_EQ(exp_of_negative(-kInfinity), 0.0f);
  EXPECT_EQ(exp_of_negative(std::nanf("")), 0.0f);
}

TEST(Extent, CountsNansAndFindsTheHighest) {
  std::vector<float> values(100, -5);
  values[37] = 2;
  values[99] = std::nanf("");
  values[16] = std::nanf("");
  EXPECT_EQ(extent_of(values).highest, 2.0f);
  EXPECT_EQ(extent_of(values).nans, 2);
  EXPECT_EQ(extent_of({}).highest, -kInfinity);
}

}  // namespace
}  // namespace optima::sampling
