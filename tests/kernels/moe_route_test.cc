// Every routing row against torch, and at the edges: ties, NaN, all experts used. Scores are made
// in double and rounded once.
#include "kernels/moe_route/moe_route.h"

#include <gtest/gtest.h>
#include <math.h>

#include <numeric>
#include <random>
#include <set>

#include "tests/kernels/goldens.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

constexpr MoeScoring kScorings[] = {MoeScoring::softmax_then_top, MoeScoring::top_then_softmax,
                                    MoeScoring::sigmoid_then_top};

struct Problem {
  int64_t rows = 1;
  int64_t experts = 1;
  int64_t used = 1;
  MoeScoring scoring = MoeScoring::softmax_then_top;
  MoeWeights weights = MoeWeights::as_is;
  float scale = 1;
  std::vector<float> logits;
  std::vector<float> bias;
};

struct Routes {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

// One value more than needed lies behind the results and must stay.
Routes route(MoeRouteFn fn, const Problem& of) {
  const auto count = static_cast<size_t>(of.rows * of.used);
  Routes out = {std::vector<int32_t>(count + 1, -7), std::vector<float>(count + 1, 77.0f)};
  fn({of.logits.data(), of.experts, of.experts, of.used, of.scoring, of.weights, of.scale,
      of.bias.empty() ? nullptr : of.bias.data(), out.ids.data(), out.weights.data()},
     0, of.rows);
  EXPECT_EQ(out.ids.back(), -7);
  EXPECT_EQ(out.weights.back(), 77.0f);
  out.ids.pop_back();
  out.weights.pop_back();
  return out;
}

std::vector<Variant<MoeRouteFn>> all_rows() {
  auto rows = runnable_rows(moe_route_variants());
  rows.push_back({"reference", kIsaNone, kMoeRouteReference});
  return rows;
}

TEST(MoeRoute, MatchesTorch) {
  const Goldens goldens;
  for (const std::string name : {"moe_qwen3", "moe_olmoe", "moe_gpt_oss", "moe_llama4",
                                 "moe_deepseek", "moe_softmax_bias"}) {
    const std::vector<double>& shape = goldens.doubles(name + ".shape");
    ASSERT_EQ(shape.size(), 5u);
    Problem of;
    of.rows = static_cast<int64_t>(shape[0]);
    of.experts = static_cast<int64_t>(shape[1]);
    of.used = static_cast<int64_t>(shape[2]);
    of.scoring = static_cast<MoeScoring>(static_cast<int32_t>(shape[3]));
    of.weights = static_cast<MoeWeights>(static_cast<int32_t>(shape[4]));
    of.scale = goldens.floats(name + ".scale")[0];
    of.logits = goldens.floats(name + ".logits");
    const std::vector<double>& ids = goldens.doubles(name + ".ids");
    for (const auto& row : all_rows()) {
      SCOPED_TRACE(name + ", " + row.name);
      of.bias = goldens.floats(name + ".bias");
      const Routes got = route(row.fn, of);
      EXPECT_EQ(std::vector<double>(got.ids.begin(), got.ids.end()), ids);
      expect_close(got.weights, goldens.doubles(name + ".weights"), 1e-7, 0);
      if (of.bias != std::vector<float>(of.bias.size(), 0.0f)) continue;
      of.bias.clear();  // none is as good as zeros
      const Routes plain = route(row.fn, of);
      EXPECT_EQ(plain.ids, got.ids);
      EXPECT_EQ(plain.weights, got.weights);
    }
  }
}

TEST(MoeRoute, TiesGoToTheLowerIndex) {
  for (const auto& row : all_rows()) {
    for (const MoeScoring scoring : kScorings) {
      const Problem of = {
          .experts = 7, .used = 4, .scoring = scoring, .logits = {1, 2, 1, 3, 2, 1, 2}, .bias = {}};
      EXPECT_EQ(route(row.fn, of).ids, (std::vector<int32_t>{3, 1, 4, 6})) << row.name;
    }
  }
}

// Scores that round to the same number still differ in their logits.
TEST(MoeRoute, SaturatedScoresKeepTheirOrder) {
  for (const auto& row : all_rows()) {
    for (const MoeScoring scoring : kScorings) {
      const Problem of = {
          .experts = 4, .used = 3, .scoring = scoring, .logits = {100, 300, 200, -5}, .bias = {}};
      EXPECT_EQ(route(row.fn, of).ids, (std::vector<int32_t>{1, 2, 0})) << row.name;
    }
  }
}

TEST(MoeRoute, AllExpertsUsed) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const int64_t experts : {1, 2, 9, 128}) {
    Problem of = {.rows = 3, .experts = experts, .used = experts, .logits = {}, .bias = {}};
    for (int64_t i = 0; i < 3 * experts; ++i) of.logits.push_back(normal(random));
    for (const auto& row : all_rows()) {
      for (const MoeScoring scoring : {kScorings[0], kScorings[1]}) {
        of.scoring = scoring;
        const Routes got = route(row.fn, of);
        for (int64_t r = 0; r < 3; ++r) {
          const auto first = got.weights.begin() + r * experts;
          EXPECT_NEAR(std::accumulate(first, first + experts, 0.0), 1, 1e-6) << row.name;
          EXPECT_TRUE(std::is_sorted(first, first + experts, std::greater<>())) << row.name;
        }
      }
    }
  }
}

// Whatever the logits are, ids are distinct and valid; a NaN shows in the weights.
TEST(MoeRoute, NanAndInfinity) {
  const float values[] = {NAN, INFINITY, -INFINITY, 1.0f, -1e30f, 1e30f};
  std::mt19937 random(12);
  for (const auto& row : all_rows()) {
    for (int round = 0; round < 600; ++round) {
      Problem of = {.experts = 1 + round % 11, .logits = {}, .bias = {}};
      of.used = 1 + round % of.experts;
      of.scoring = kScorings[round % 3];
      of.weights = round % 2 == 0 ? MoeWeights::as_is : MoeWeights::normalised;
      bool nan = false;
      for (int64_t i = 0; i < of.experts; ++i) {
        of.logits.push_back(round < 60 ? NAN : values[random() % 6]);
        nan = nan || isnan(of.logits.back());
        if (round % 5 == 0) of.bias.push_back(values[random() % 6]);
      }
      const Routes got = route(row.fn, of);
      EXPECT_EQ(std::set<int32_t>(got.ids.begin(), got.ids.end()).size(), got.ids.size());
      for (const int32_t id : got.ids) ASSERT_TRUE(id >= 0 && id < of.experts) << row.name;
      if (nan && of.bias.empty()) {
        EXPECT_TRUE(isnan(got.weights[0])) << row.name << " round " << round;
      }
    }
  }
}

// Rows are apart by a stride, and only the rows asked for are written.
TEST(MoeRoute, StrideAndRowRange) {
  const std::vector<float> logits = {9, 1, 2, 50, 1, 9, 2, 50, 1, 2, 9, 50};
  for (const auto& row : all_rows()) {
    std::vector<int32_t> ids(3, -1);
    std::vector<float> weights(3, -1);
    row.fn({logits.data(), 4, 3, 1, MoeScoring::top_then_softmax, MoeWeights::as_is, 0.5f, nullptr,
            ids.data(), weights.data()},
           1, 3);
    EXPECT_EQ(ids, (std::vector<int32_t>{-1, 1, 2})) << row.name;
    EXPECT_EQ(weights, (std::vector<float>{-1, 0.5f, 0.5f})) << row.name;
  }
}

TEST(MoeRoute, AllScoresZero) {
  for (const auto& row : all_rows()) {
    const Problem of = {.experts = 3,
                        .used = 2,
                        .scoring = MoeScoring::sigmoid_then_top,
                        .weights = MoeWeights::normalised,
                        .logits = {-1e4f, -1e4f, -2e4f},
                        .bias = {}};
    const Routes got = route(row.fn, of);
    EXPECT_EQ(got.ids, (std::vector<int32_t>{0, 1})) << row.name;
    EXPECT_EQ(got.weights, (std::vector<float>{0, 0})) << row.name;
  }
}

}  // namespace
}  // namespace optima::kernels
