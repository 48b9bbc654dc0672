// Drawing by blocks against drawing from the list of all candidates, and selections that know the
// blocks' maxima against those that look at every logit.
#include "sampling/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sampling/sampler.h"
#include "sampling/truncation.h"

namespace optima::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// With many equal values, and values that cannot be drawn.
std::vector<float> some_logits(size_t vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1 + static_cast<float>(seed % 4));
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) {
    logit = std::round(normal(random) * 64) / 64;
    if (random() % 7 == 0) logit = -kInfinity;
  }
  logits[vocabulary / 2] = 0;
  return logits;
}

const size_t kSizes[] = {1, 2, 255, 256, 257, 1000, 5003};

TEST(DrawByBlocks, GivesWhatTheCandidatesGive) {
  std::vector<float> maxima;
  std::vector<double> masses;
  std::vector<Candidate> candidates;
  for (const size_t vocabulary : kSizes) {
    for (unsigned seed = 0; seed < 4; ++seed) {
      const std::vector<float> logits = some_logits(vocabulary, seed);
      const Survey survey = survey_of(kPlainPasses, logits, maxima);
      for (const float temperature : {1.0f, 0.7f, 2.5f, 1e-20f}) {
        const Scale scale{survey.highest, temperature};
        block_masses(kPlainPasses, logits, scale, masses);
        select_candidates({.temperature = temperature}, logits, survey.highest, candidates);
        const double sum = mass_of(candidates);
        EXPECT_NEAR(sum_of(masses), sum, 1e-12 * sum);
        for (double u = 0; u < 1; u += 0.00371)
          ASSERT_EQ(draw(kPlainPasses, logits, scale, masses, u), draw(candidates, u))
              << vocabulary << " at " << temperature << ", u " << u;
        const double last = 0x1.fffffffffffffp-1;
        EXPECT_EQ(draw(kPlainPasses, logits, scale, masses, last), draw(candidates, last));
      }
    }
  }
}

// Masses that promise more than the weights hold, as rounding may: the last that weighs something.
TEST(DrawByBlocks, StaysInsideWhenRoundingLeadsPastTheEnd) {
  std::vector<float> logits(600, -kInfinity);
  logits[10] = logits[300] = logits[310] = 2;
  const std::vector<double> masses = {1, 2.5, 0};
  EXPECT_EQ(draw(kPlainPasses, logits, {2}, masses, 0.9999), 310);
  EXPECT_EQ(draw(kPlainPasses, logits, {2}, masses, 0.28), 10);
  EXPECT_EQ(draw(kPlainPasses, logits, {2}, masses, 0.29), 300);
  EXPECT_EQ(draw(kPlainPasses, logits, {2}, std::vector<double>(3, 0), 0.5), -1);
}

TEST(Survey, CountsNansAndFindsTheHighest) {
  std::vector<float> maxima;
  std::vector<float> logits(700, -5);
  logits[300] = 2;
  logits[299] = logits[699] = std::nanf("");
  const Survey survey = survey_of(kPlainPasses, logits, maxima);
  EXPECT_EQ(survey.highest, 2);
  EXPECT_EQ(survey.nans, 2);
  EXPECT_EQ(maxima, (std::vector<float>{-5, 2, -5}));
  EXPECT_EQ(survey_of(kPlainPasses, {}, maxima).highest, -kInfinity);
}

TEST(Survey, ChangesNoSelection) {
  const Truncation truncations[] = {{},
                                    {.top_k = 1},
                                    {.top_k = 3, .temperature = 0.8f},
                                    {.top_k = 40, .top_p = 0.95f, .min_p = 0.05f},
                                    {.top_k = 400},
                                    {.top_p = 0.9f, .temperature = 1.5f},
                                    {.min_p = 0.2f},
                                    {.typical_p = 0.8f},
                                    {.top_k = 30, .top_n_sigma = 1},
                                    {.top_n_sigma = 1.5f},
                                    {.xtc_threshold = 0.05f}};
  std::vector<float> maxima;
  std::vector<double> masses;
  std::vector<Candidate> plain, known;
  for (const size_t vocabulary : kSizes) {
    for (unsigned seed = 0; seed < 4; ++seed) {
      const std::vector<float> logits = some_logits(vocabulary, seed);
      Survey survey = survey_of(kPlainPasses, logits, maxima);
      block_masses(kPlainPasses, logits, {survey.highest}, masses);
      survey.masses = masses;
      for (const Truncation& truncation : truncations) {
        select_candidates(truncation, logits, survey.highest, plain);
        select_candidates(truncation, logits, survey, known);
        ASSERT_EQ(plain.size(), known.size()) << vocabulary;
        for (size_t i = 0; i < plain.size(); ++i) {
          ASSERT_EQ(plain[i].token, known[i].token) << vocabulary;
          ASSERT_EQ(plain[i].weight, known[i].weight) << vocabulary;
        }
      }
    }
  }
}

TEST(KeepsAll, IsTrueWhenNothingIsRemoved) {
  EXPECT_TRUE(keeps_all({}, 100));
  EXPECT_TRUE(keeps_all({.top_k = 100, .typical_p = 1, .top_p = 1, .temperature = 0.5f}, 100));
  const Truncation selecting[] = {
      {.top_k = 99},      {.typical_p = 0.9f},     {.top_p = 0.9f},        {.min_p = 0.1f},
      {.top_n_sigma = 1}, {.xtc_threshold = 0.1f}, {.dynamic_range = 0.5f}};
  for (const Truncation& truncation : selecting) EXPECT_FALSE(keeps_all(truncation, 100));
}

int calls = 0;

// The sampler uses what it was given, and greedy choices after a change still take the first.
TEST(Sampler, UsesThePassesOfItsCaller) {
  Passes counting = kPlainPasses;
  counting.maxima = [](const float* logits, int64_t count, float* maxima) {
    ++calls;
    return kPlainPasses.maxima(logits, count, maxima);
  };
  std::vector<float> logits(1000, 0.0f);
  logits[999] = logits[777] = 5;
  Sampler sampler({.logit_bias = {{3, 1.0f}}}, 1000, counting);
  EXPECT_EQ(sampler.sample(logits, {}, 0)->token, 777);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace optima::sampling
