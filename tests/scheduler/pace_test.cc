// The controller on simulated machines: batches stay within the bound, prompts end in time.
#include "scheduler/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace optima::scheduler {
namespace {

constexpr PaceLimits kLimits{512, 2, 2.0};

// A batch of n tokens: reading the weights, or computing for n + 4 of them (unpacking is as four).
struct Machine {
  double read_ns, token_ns;
  int64_t batch_ns(int64_t tokens) const {
    const double computing = token_ns * static_cast<double>(tokens + 4);
    return static_cast<int64_t>(tokens < 4 ? std::max(read_ns, token_ns)
                                           : std::max(read_ns, computing));
  }
};

struct Ran {
  double p99_stretch = 0;     // of a batch, over one without prompt tokens
  double prompt_stretch = 0;  // of the prompt's time, over its time alone
};

Ran run(const Machine& machine, int64_t decodes, int64_t prompt, double noise) {
  Pace pace(kLimits);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> factor(1.0, 1.0 + noise);
  std::vector<double> stretches;
  double total = 0;
  for (int64_t left = prompt; left > 0;) {
    const int64_t tokens = std::min(left, pace.prompt_tokens(decodes));
    const auto took = static_cast<int64_t>(static_cast<double>(machine.batch_ns(tokens + decodes)) *
                                           factor(random));
    pace.observe(tokens, decodes, took);
    stretches.push_back(static_cast<double>(took) / static_cast<double>(machine.batch_ns(decodes)));
    total += static_cast<double>(took);
    left -= tokens;
  }
  double alone = 0;
  for (int64_t left = prompt; left > 0; left -= 512)
    alone += static_cast<double>(machine.batch_ns(std::min<int64_t>(left, 512)));
  std::sort(stretches.begin(), stretches.end());
  return {stretches[stretches.size() * 99 / 100], total / alone};
}

TEST(Pace, BoundsBothSides) {
  // A small model on two cores; a large one; one where computing is cheap.
  for (const Machine& machine : {Machine{8e6, 1.25e6}, Machine{2e8, 2.5e7}, Machine{8e6, 4e5}})
    for (const int64_t decodes : {1, 8}) {
      const Ran ran = run(machine, decodes, 4000, 0.05);
      EXPECT_LE(ran.p99_stretch, 2.2) << machine.token_ns << ", " << decodes;
      EXPECT_LE(ran.prompt_stretch, 3.5) << machine.token_ns << ", " << decodes;
    }
}

TEST(Pace, NobodyWaitsForAnyone) {
  Pace pace(kLimits);
  EXPECT_EQ(pace.prompt_tokens(0), 512);
  EXPECT_EQ(pace.prompt_tokens(3), 0) << "first it measures";
  pace.observe(0, 3, 1000);
  EXPECT_EQ(pace.prompt_tokens(3), 2);
  EXPECT_EQ(pace.prompt_tokens(30), 0) << "that is another batch";
}

TEST(Pace, PromptsEndHoweverSlowTheyAre) {
  Pace pace(kLimits);
  pace.observe(0, 1, 1000);
  for (int i = 0; i < 200; ++i) {
    const int64_t tokens = pace.prompt_tokens(1);
    if (tokens == 0) {
      pace.observe(0, 1, 1000);
      continue;
    }
    EXPECT_GE(tokens, 2);
    pace.observe(tokens, 1, 1'000'000);
  }
}

TEST(Pace, FollowsTheClock) {
  Pace pace(kLimits);
  const auto settle = [&](int64_t ns_per_token) {
    int64_t tokens = 0;
    for (int i = 0; i < 300; ++i) {
      tokens = pace.prompt_tokens(1);
      pace.observe(tokens, 1, 10'000 + tokens * ns_per_token);
    }
    return tokens;
  };
  pace.observe(0, 1, 10'000);
  const int64_t cheap = settle(100), dear = settle(1000);
  EXPECT_NEAR(static_cast<double>(cheap), 80, 15);
  EXPECT_NEAR(static_cast<double>(dear), 8, 2);
}

}  // namespace
}  // namespace optima::scheduler
