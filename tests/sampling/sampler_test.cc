// The sampler as a whole: draws follow the probabilities, depend on (seed, step) alone, greedy
// takes the first of equals, log-probabilities are those of the untouched logits, errors carry
// numbers.
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <string>

#include "sampling/rng.h"

namespace optima::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Pick sample_one(const SamplingParams& params, std::vector<float> logits,
                const std::vector<int32_t>& history = {}, int64_t step = 0) {
  Sampler sampler(params, static_cast<int32_t>(logits.size()));
  Result<Pick> pick = sampler.sample(logits, history, step);
  EXPECT_TRUE(pick.ok()) << pick.status().message();
  return pick.ok() ? pick.take() : Pick{};
}

TEST(Philox, GivesThePublishedAnswers) {
  // Random123's known answers.
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AgreesWithASecondImplementation) {
  std::ifstream in(OPTIMA_SOURCE_DIR "/tests/goldens/sampling/philox.txt");
  std::array<uint32_t, 10> w{};
  int lines = 0;
  in >> std::hex;
  while (in >> w[0] >> w[1] >> w[2] >> w[3] >> w[4] >> w[5] >> w[6] >> w[7] >> w[8] >> w[9]) {
    ASSERT_EQ(philox4x32_10({w[0], w[1], w[2], w[3]}, {w[4], w[5]}),
              (PhiloxCounter{w[6], w[7], w[8], w[9]}));
    ++lines;
  }
  EXPECT_EQ(lines, 200);
}

TEST(Philox, UniformLiesInTheUnitInterval) {
  double sum = 0;
  for (uint64_t step = 0; step < 100000; ++step) {
    const double value = uniform(42, step);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.004);  // 4 sigma
  EXPECT_NE(uniform(0, 1), uniform(1, 0));
  EXPECT_NE(uniform(0, uint64_t{1} << 32), uniform(0, 0));
  EXPECT_NE(uniform(uint64_t{1} << 32, 0), uniform(0, 0));
}

// Pearson's statistic of `draws` draws against the probabilities.
double chi_square(const SamplingParams& params, const std::vector<float>& logits,
                  const std::vector<double>& probabilities) {
  constexpr int kDraws = 100000;
  Sampler sampler(params, static_cast<int32_t>(logits.size()));
  std::vector<int> counts(logits.size());
  for (int step = 0; step < kDraws; ++step) {
    std::vector<float> scratch = logits;
    ++counts[static_cast<size_t>(sampler.sample(scratch, {}, step)->token)];
  }
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (probabilities[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    const double expected = probabilities[i] * kDraws;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return statistic;
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  std::vector<float> logits;
  std::vector<double> probabilities;
  double sum = 0;
  for (int i = 0; i < 20; ++i) {
    logits.push_back(0.2f * static_cast<float>((i * 7) % 20));
    probabilities.push_back(std::exp(logits.back() / 1.5));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  // 99.9 % quantile of chi-square with 19 degrees of freedom: 43.8. The seeds are fixed.
  for (const uint64_t seed : {0, 1, 12345})
    EXPECT_LT(chi_square({.temperature = 1.5f, .seed = seed}, logits, probabilities), 43.8);
  // The five best alone; 4 degrees of freedom: 18.5.
  std::vector<double> sorted = probabilities;
  std::sort(sorted.rbegin(), sorted.rend());
  double best = 0;
  for (int i = 0; i < 5; ++i) best += sorted[static_cast<size_t>(i)];
  for (double& probability : probabilities)
    probability = probability >= sorted[4] ? probability / best : 0;
  EXPECT_LT(chi_square({.temperature = 1.5f, .top_k = 5}, logits, probabilities), 18.5);
}

TEST(Sampler, DependsOnSeedAndStepAlone) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(500);
  for (float& logit : logits) logit = normal(random);
  const SamplingParams params{.temperature = 1, .top_p = 0.95f, .seed = 99};
  std::vector<int32_t> in_order;
  Sampler sampler(params, 500);
  for (int64_t step = 0; step < 50; ++step) {
    std::vector<float> scratch = logits;
    in_order.push_back(sampler.sample(scratch, {}, step)->token);
  }
  for (int64_t step = 49; step >= 0; --step)
    EXPECT_EQ(sample_one(params, logits, {1, 2, 3}, step).token,
              in_order[static_cast<size_t>(step)]);
  SamplingParams other = params;
  other.seed = 100;
  int equal = 0;
  for (int64_t step = 0; step < 50; ++step)
    equal += sample_one(other, logits, {}, step).token == in_order[static_cast<size_t>(step)];
  EXPECT_LT(equal, 25);
}

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  EXPECT_EQ(sample_one({}, {1, 5, 5, 2}).token, 1);
  EXPECT_EQ(sample_one({.logit_bias = {{2, 0.5f}}}, {1, 5, 5, 2}).token, 2);
  EXPECT_EQ(sample_one({.logit_bias = {{1, -kInfinity}, {2, -kInfinity}}}, {1, 5, 5, 2}).token, 3);
  EXPECT_EQ(sample_one({.repetition_penalty = 3}, {2, 5, 4, 2}, {1, 1, 7, -1}).token, 2);
  EXPECT_EQ(sample_one({.presence_penalty = 2}, {2, 5, 4, 2}, {1, 1}).token, 2);
  EXPECT_EQ(sample_one({.frequency_penalty = 0.4f}, {2, 5, 4, 2}, {1, 1}).token, 1);
  EXPECT_EQ(sample_one({.frequency_penalty = 0.6f}, {2, 5, 4, 2}, {1, 1}).token, 2);
  EXPECT_EQ(sample_one({.presence_penalty = 2, .penalty_window = 2}, {2, 5, 4, 2}, {1, 0, 0}).token,
            1);
  // Truncation does not touch greedy, not even typical, which may drop the best.
  EXPECT_EQ(sample_one({.top_k = 1, .top_p = 0.1f, .typical_p = 0.1f}, {1, 5, 5, 2}).token, 1);
}

TEST(Sampler, GreedyOnlySaysWhenTheArgmaxIsEnough) {
  EXPECT_TRUE(Sampler({}, 4).greedy_only());
  EXPECT_TRUE(Sampler({.top_k = 5, .repetition_penalty = 1, .seed = 3}, 4).greedy_only());
  EXPECT_FALSE(Sampler({.temperature = 0.1f}, 4).greedy_only());
  EXPECT_FALSE(Sampler({.repetition_penalty = 1.1f}, 4).greedy_only());
  EXPECT_FALSE(Sampler({.presence_penalty = -1}, 4).greedy_only());
  EXPECT_FALSE(Sampler({.frequency_penalty = 1}, 4).greedy_only());
  EXPECT_FALSE(Sampler({.logprobs = 1}, 4).greedy_only());
  EXPECT_FALSE(Sampler({.logit_bias = {{1, 1.0f}}}, 4).greedy_only());
}

TEST(Logprobs, AgreeWithNumpy) {
  std::ifstream in(OPTIMA_SOURCE_DIR "/tests/goldens/sampling/logprobs.txt");
  size_t count = 0;
  int lists = 0;
  std::string word;
  while (in >> count) {
    std::vector<float> logits(count), expected(count);
    for (std::vector<float>* list : {&logits, &expected})
      for (float& value : *list) {
        in >> word;
        value = std::stof(word);
      }
    for (size_t i = 0; i < count; ++i) {
      const float logprob = logprob_of(logits, static_cast<int32_t>(i));
      if (std::isinf(expected[i])) {
        EXPECT_EQ(logprob, -kInfinity);
      } else {
        EXPECT_NEAR(logprob, expected[i], 1e-6 + 2e-7 * std::abs(expected[i]));
      }
    }
    const std::vector<TokenLogprob> top = top_logprobs(logits, 9);
    ASSERT_EQ(top.size(), 9u);
    std::vector<float> sorted = expected;
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(top[i].logprob, sorted[i], 1e-5);
    ++lists;
  }
  EXPECT_EQ(lists, 5);
}

TEST(Logprobs, AreThoseOfTheUntouchedLogits) {
  const std::vector<float> logits = {0.5f, 2, -1, 2, 0};
  const SamplingParams params{.temperature = 0.7f,
                              .top_k = 1,
                              .repetition_penalty = 5,
                              .logprobs = 3,
                              .logit_bias = {{1, -kInfinity}, {2, 9}}};
  const Pick pick = sample_one(params, logits, {3, 0});
  EXPECT_EQ(pick.token, 2);
  EXPECT_EQ(pick.logprob, logprob_of(logits, 2));
  ASSERT_EQ(pick.top.size(), 3u);
  EXPECT_EQ(pick.top[0].token, 1);  // equals in order of token
  EXPECT_EQ(pick.top[1].token, 3);
  EXPECT_EQ(pick.top[2].token, 0);
  EXPECT_EQ(pick.top[1].logprob, logprob_of(logits, 3));
  EXPECT_EQ(sample_one({}, logits).logprob, logprob_of(logits, 1));
}

TEST(Logprobs, SurviveNansAndInfinities) {
  const std::vector<float> broken = {std::nanf(""), 1, -kInfinity, 1};
  EXPECT_NEAR(logprob_of(broken, 1), std::log(0.5), 1e-6);
  EXPECT_EQ(logprob_of(broken, 0), -kInfinity);
  EXPECT_EQ(logprob_of(broken, 2), -kInfinity);
  EXPECT_EQ(top_logprobs(broken, 4).size(), 2u);
  EXPECT_EQ(logprob_of(std::vector<float>(3, -kInfinity), 1), -kInfinity);
  EXPECT_TRUE(top_logprobs(std::vector<float>(3, std::nanf("")), 2).empty());
}

TEST(Sampler, RefusesLogitsWithoutACandidate) {
  const auto fails = [](const SamplingParams& params, std::vector<float> logits) {
    Sampler sampler(params, static_cast<int32_t>(logits.size()));
    const Result<Pick> pick = sampler.sample(logits, {}, 0);
    EXPECT_EQ(pick.status().code(), Code::internal);
    return pick.status().message();
  };
  const float nan = std::nanf("");
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingParams params{.temperature = temperature};
    EXPECT_EQ(fails(params, {nan, 1, nan}), "2 of 3 logits are NaN");
    EXPECT_EQ(fails(params, {-kInfinity, -kInfinity}),
              "no token is possible: all 2 logits are -inf");
    EXPECT_EQ(fails(params, {kInfinity, 1}), "a logit of 2 is +inf");
    SamplingParams banned = params;
    banned.logit_bias = {{0, -kInfinity}, {1, -kInfinity}};
    EXPECT_EQ(fails(banned, {1, 2}),
              "after bias and penalties: no token is possible: all 2 logits are -inf");
  }
  Sampler sampler({}, 3);
  std::vector<float> logits(2);
  EXPECT_EQ(sampler.sample(logits, {}, 0).status().message(), "2 logits for 3 tokens");
}

TEST(Validate, NamesFieldValueAndRange) {
  const auto message = [](const SamplingParams& params) {
    const Status status = validate(params, 100);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.message();
  };
  const float nan = std::nanf("");
  EXPECT_TRUE(validate({}, 100).ok());
  EXPECT_TRUE(validate({.temperature = 2,
                        .top_k = 1000,
                        .top_p = 1,
                        .min_p = 1,
                        .typical_p = 1,
                        .repetition_penalty = 0.5f,
                        .presence_penalty = -2,
                        .frequency_penalty = -2,
                        .penalty_window = 7,
                        .seed = ~uint64_t{0},
                        .logprobs = 100,
                        .logit_bias = {{0, -kInfinity}, {99, 100}}},
                       100)
                  .ok());
  EXPECT_EQ(message({.top_p = 1.5f}), "top_p is 1.5: must be a number from 0 to 1");
  EXPECT_EQ(message({.top_k = -3}).substr(0, 12), "top_k is -3:");
  EXPECT_EQ(message({.logit_bias = {{100, 1}}}), "a token of logit_bias is 100: must be 0 to 99");
  const std::vector<SamplingParams> refused = {
      {.temperature = nan},
      {.temperature = -0.1f},
      {.temperature = kInfinity},
      {.top_p = nan},
      {.top_p = -0.1f},
      {.min_p = 1.1f},
      {.min_p = nan},
      {.typical_p = -1},
      {.repetition_penalty = -1},
      {.repetition_penalty = nan},
      {.presence_penalty = nan},
      {.frequency_penalty = kInfinity},
      {.penalty_window = -1},
      {.logprobs = 101},
      {.logprobs = -1},
      {.logit_bias = {{-1, 0.0f}}},
      {.logit_bias = {{5, nan}}},
      {.logit_bias = {{5, kInfinity}}},
  };
  for (const SamplingParams& params : refused) EXPECT_FALSE(message(params).empty());
}

}  // namespace
}  // namespace optima::sampling
