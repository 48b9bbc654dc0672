// XTC, top-n-sigma, mirostat 2, DRY and dynamic temperature against numpy (newer.txt), and where
// the hook and the mask stand in the chain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sampling/dry.h"
#include "sampling/dynamic_temperature.h"
#include "sampling/mirostat.h"
#include "sampling/rng.h"
#include "sampling/sampler.h"
#include "sampling/top_n_sigma.h"
#include "sampling/truncation.h"
#include "sampling/xtc.h"

namespace optima::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
std::vector<T> read_list(std::istream& in) {
  size_t count = 0;
  in >> count;
  std::vector<T> list(count);
  for (T& item : list) in >> item;
  return list;
}

std::vector<Candidate> candidates_of(const std::vector<float>& logits) {
  std::vector<Candidate> candidates;
  const float highest = *std::max_element(logits.begin(), logits.end());
  select_candidates({}, logits, highest, candidates);
  return candidates;
}

std::vector<int32_t> ids_of(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.token);
  return ids;
}

class Goldens {
 public:
  Goldens() : in_(OPTIMA_SOURCE_DIR "/tests/goldens/sampling/newer.txt") {}

  void check() {
    for (std::string word; in_ >> word; ++seen_[word]) {
      if (word == "logits") logits_ = read_list<float>(in_);
      if (word == "sigma") check_sigma();
      if (word == "xtc") check_xtc();
      if (word == "dynamic") check_dynamic();
      if (word == "mirostat") check_mirostat();
      if (word == "history") history_ = read_list<int32_t>(in_);
      if (word == "dry") check_dry();
    }
    for (const char* word : {"sigma", "xtc", "dynamic", "mirostat"}) EXPECT_GE(seen_[word], 6);
    EXPECT_EQ(seen_["dry"], 24);
  }

 private:
  std::vector<int32_t> kept() {
    std::string word;
    in_ >> word;
    EXPECT_EQ(word, "kept");
    return read_list<int32_t>(in_);
  }

  void check_sigma() {
    float n = 0;
    in_ >> n;
    std::vector<Candidate> candidates;
    const float highest = *std::max_element(logits_.begin(), logits_.end());
    select_candidates({.top_n_sigma = n}, logits_, highest, candidates);
    EXPECT_EQ(ids_of(candidates), kept()) << n;
  }

  void check_xtc() {
    float threshold = 0;
    in_ >> threshold;
    std::vector<Candidate> candidates = candidates_of(logits_);
    exclude_top_choices(threshold, candidates);
    EXPECT_EQ(ids_of(candidates), kept()) << threshold;
  }

  void check_dynamic() {
    DynamicTemperature settings;
    float expected = 0;
    in_ >> settings.centre >> settings.range >> settings.exponent >> expected;
    EXPECT_NEAR(dynamic_temperature(settings, candidates_of(logits_)), expected, 1e-5);
  }

  void check_mirostat() {
    Mirostat mirostat{};
    int32_t token = 0;
    float next = 0;
    in_ >> mirostat.limit >> mirostat.target >> mirostat.rate >> token >> next;
    std::vector<Candidate> candidates = candidates_of(logits_);
    keep_unsurprising(mirostat.limit, candidates);
    EXPECT_EQ(ids_of(candidates), kept()) << mirostat.limit;
    EXPECT_NEAR(next_limit(mirostat, candidates, token), next, 1e-4);
  }

  void check_dry() {
    Dry dry;
    in_ >> dry.multiplier >> dry.base >> dry.allowed;
    std::string word;
    in_ >> word;
    ASSERT_EQ(word, "breakers");
    const std::vector<int32_t> breakers = read_list<int32_t>(in_);
    dry.breakers = breakers;
    in_ >> word;
    ASSERT_EQ(word, "penalties");
    size_t count = 0;
    in_ >> count;
    std::vector<double> expected(16);
    for (size_t i = 0; i < count; ++i) {
      size_t token = 0;
      in_ >> token;
      in_ >> expected[token];
    }
    std::vector<float> logits(16);
    std::vector<int32_t> scratch;
    apply_dry(dry, history_, scratch, logits);
    for (size_t token = 0; token < logits.size(); ++token)
      EXPECT_NEAR(-logits[token], expected[token], 1e-5 * std::abs(expected[token])) << token;
  }

  std::ifstream in_;
  std::vector<float> logits_;
  std::vector<int32_t> history_;
  std::map<std::string, int> seen_;
};

TEST(NewerSamplers, AgreeWithNumpy) {
  Goldens().check();
}

TEST(Dry, StaysFiniteAndIgnoresForeignTokens) {
  std::vector<int32_t> history(100000, 3);
  history.insert(history.begin(), -1);
  history.insert(history.begin(), 900);
  std::vector<float> logits(8);
  std::vector<int32_t> scratch;
  apply_dry({.multiplier = 1, .base = 4, .allowed = 1}, history, scratch, logits);
  EXPECT_EQ(logits[3], -1e30f);
  EXPECT_EQ(logits[2], 0);
  apply_dry({.multiplier = 1}, {}, scratch, logits);
}

int32_t token_of(const SamplingParams& params, std::vector<float> logits, const StepLimits& limits,
                 const std::vector<int32_t>& history = {}) {
  Sampler sampler(params, static_cast<int32_t>(logits.size()));
  Result<Pick> pick = sampler.sample(logits, history, 0, limits);
  EXPECT_TRUE(pick.ok()) << pick.status().message();
  return pick.ok() ? pick->token : -1;
}

TEST(StepLimits, HookSeesPenaltiesAndTheMaskHasTheLastWord) {
  std::vector<float> seen;
  std::vector<int32_t> tokens;
  const LogitsHook hook = [&](std::span<float> logits, std::span<const int32_t> history) {
    seen.assign(logits.begin(), logits.end());
    tokens.assign(history.begin(), history.end());
    logits[0] = 100;
    return Status();
  };
  TokenMask mask{{0b1110}};
  EXPECT_EQ(token_of({.presence_penalty = 2}, {1, 5, 4, 2}, {&hook, &mask}, {1}), 2);
  EXPECT_EQ(seen, (std::vector<float>{1, 3, 4, 2}));
  EXPECT_EQ(tokens, (std::vector<int32_t>{1}));
  EXPECT_EQ(token_of({}, {1, 5, 4, 2}, {&hook, nullptr}), 0);
  EXPECT_EQ(token_of({.temperature = 1, .top_k = 1}, {9, 5, 4, 2}, {nullptr, &mask}), 1);
}

TEST(StepLimits, LogprobsStayThoseOfTheModel) {
  TokenMask mask{{0b0100}};
  std::vector<float> logits{3, 2, 1, 0};
  const float expected = logprob_of(logits, 2);
  Sampler sampler({.temperature = 1}, 4);
  Result<Pick> pick = sampler.sample(logits, {}, 0, {nullptr, &mask});
  ASSERT_TRUE(pick.ok());
  EXPECT_EQ(pick->token, 2);
  EXPECT_NEAR(pick->logprob, expected, 1e-6);
}

TEST(StepLimits, FailuresAreStatuses) {
  const LogitsHook failing = [](std::span<float>, std::span<const int32_t>) {
    return Status(Code::cancelled, "the host has had enough");
  };
  std::vector<float> logits{1, 2};
  Sampler sampler({}, 2);
  EXPECT_EQ(sampler.sample(logits, {}, 0, {&failing, nullptr}).status().code(), Code::cancelled);
  TokenMask nothing{{0}};
  EXPECT_EQ(sampler.sample(logits, {}, 0, {nullptr, &nothing}).status().code(),
            Code::invalid_state);
  const LogitsHook poison = [](std::span<float> all, std::span<const int32_t>) {
    all[1] = std::numeric_limits<float>::quiet_NaN();
    return Status();
  };
  logits = {1, 2};
  EXPECT_EQ(sampler.sample(logits, {}, 0, {&poison, nullptr}).status().code(), Code::internal);
}

TEST(Mirostat, KeepsTheMeanSurpriseAtItsTarget) {
  std::vector<float> logits(2000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = -1.2f * std::log(static_cast<float>(i + 1));  // Zipf
  for (const float target : {2.0f, 4.0f}) {
    Mirostat mirostat{target, 0.1f, 2 * target};
    for (uint64_t step = 0; step < 4000; ++step) {
      std::vector<Candidate> candidates = candidates_of(logits);
      keep_unsurprising(mirostat.limit, candidates);
      const int32_t token = draw(candidates, uniform(5, step));
      mirostat.limit = next_limit(mirostat, candidates, token);
    }
    // limit = 2 * target - rate * sum(surprise - target): that it stays put is that the mean is
    // met.
    EXPECT_LT(std::abs(mirostat.limit - 2 * target) / (0.1 * 4000), 0.02);
  }
}

TEST(Mirostat, OfTheSamplerRunsAlong) {
  const SamplingParams params{.temperature = 0.7f, .seed = 9, .mirostat_tau = 3};
  std::vector<float> logits(50);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 0.1f * static_cast<float>(i);
  std::vector<int32_t> first, second;
  for (std::vector<int32_t>* tokens : {&first, &second}) {
    Sampler sampler(params, 50);
    for (int64_t step = 0; step < 100; ++step) {
      std::vector<float> scratch = logits;
      tokens->push_back(sampler.sample(scratch, {}, step)->token);
    }
  }
  EXPECT_EQ(first, second);
}

TEST(Xtc, IsDrawnForEachStep) {
  const SamplingParams params{.temperature = 1, .seed = 3, .xtc_probability = 0.5f};
  Sampler sampler(params, 3);
  int dropped = 0;
  for (int64_t step = 0; step < 2000; ++step) {
    std::vector<float> logits{10, 9.9f, 9.8f};
    const int32_t token = sampler.sample(logits, {}, step)->token;
    dropped += token == 2;
  }
  // All three are above 0.1: with XTC always token 2; without, about 0.3 of the time.
  EXPECT_NEAR(dropped / 2000.0, 0.5 + 0.5 * 0.301, 0.05);
}

TEST(DynamicTemperature, OfZeroTakesTheBest) {
  SamplingParams params{.temperature = 0.5f, .dynamic_range = 0.5f};
  EXPECT_EQ(token_of(params, {1, 1000, 2}, {}), 1);
  EXPECT_EQ(token_of({.temperature = 1, .top_k = 1, .dynamic_range = 1}, {1, 3, 2}, {}), 1);
}

TEST(NewerSamplers, AreChecked) {
  const auto code = [](const SamplingParams& params) { return validate(params, 100).code(); };
  EXPECT_EQ(code({.temperature = 1, .xtc_probability = 0.5f}), Code::ok);
  EXPECT_EQ(code({.xtc_probability = 0.5f}), Code::invalid_argument);
  EXPECT_EQ(code({.mirostat_tau = 3}), Code::invalid_argument);
  EXPECT_EQ(code({.temperature = 1, .top_p = 0.9f, .mirostat_tau = 3}), Code::invalid_argument);
  EXPECT_EQ(code({.temperature = 1, .top_p = 1, .mirostat_tau = 3}), Code::ok);
  EXPECT_EQ(code({.temperature = 1, .xtc_probability = 1.5f}), Code::invalid_argument);
  EXPECT_EQ(code({.temperature = 1, .dynamic_range = -1}), Code::invalid_argument);
  EXPECT_EQ(code({.temperature = 1, .top_n_sigma = kInfinity}), Code::invalid_argument);
  EXPECT_EQ(code({.dry_multiplier = 1, .dry_base = 0.5f}), Code::invalid_argument);
  EXPECT_EQ(code({.dry_multiplier = 1, .dry_breakers = {100}}), Code::invalid_argument);
  EXPECT_EQ(code({.dry_multiplier = 1, .dry_breakers = {99}}), Code::ok);
  const Status status = validate({.temperature = 1, .top_k = 3, .mirostat_tau = 3}, 100);
  EXPECT_EQ(status.message(), "mirostat_tau is 3: top_k must be off with it");
}

}  // namespace
}  // namespace optima::sampling
