// Attention by tiles of bfloat16, real and simulated: shapes whose tiles of pages are seen whole,
// how near it comes, and what it must not touch.
#include <math.h>

#include "tests/kernels/attention_testing.h"

namespace optima::kernels {
namespace {

double rms_of_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += pow(static_cast<double>(a[i]) - b[i], 2);
  return sqrt(sum / static_cast<double>(a.size()));
}

// Long prompts behind a prefix: head sizes that are whole tiles and some that are not, groups that
// make odd numbers of row tiles, all KV types, windows, caps and sinks.
TEST(AttentionTiles, ShapesEqualTheReference) {
  for (const int64_t head_dim : {32, 80, 96, 256}) {
    for (const KvType type : {KvType::f16, KvType::q8_0}) {
      check({.tokens = 37,
             .first_position = 150,
             .heads = 6,
             .kv_heads = 2,
             .head_dim = head_dim,
             .kv_type = type});
    }
  }
  // Where every row with tiles uses them.
  for (const int64_t head_dim : {32, 96}) {
    check({.tokens = 37, .first_position = 1030, .heads = 3, .kv_heads = 1, .head_dim = head_dim});
  }
  for (const int64_t group : {2, 3, 4, 7}) {
    check({.tokens = 40,
           .first_position = 133,
           .heads = group,
           .kv_heads = 1,
           .window = 110,
           .kv_type = KvType::bf16});
    check({.tokens = 16, .first_position = 250, .heads = group, .kv_heads = 1, .sinks = true});
    check({.tokens = 33, .first_position = 200, .heads = group, .kv_heads = 1, .softcap = 4.0f});
    check({.tokens = 90, .heads = group, .kv_heads = 1, .mask = AttentionMask::all});
  }
}

// Weighted means of 2,048 values: 0.17 % of a value's RMS, of 1.7, in each of q, k, v and weights.
TEST(AttentionTiles, RoundingStaysSmall) {
  const AttentionShape shape = {
      .tokens = 48, .first_position = 2000, .heads = 3, .kv_heads = 1, .head_dim = 64};
  const Problem problem(shape);
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : rounding()) {
    const double error = rms_of_difference(solve(problem, kv, row.kernel), want);
    EXPECT_LT(error, 4e-4) << row.name;
    EXPECT_GT(error, 1e-6) << row.name << " rounds nothing";
  }
}

// What a token does not see may be anything: NaN in the keys and values of later tokens of its
// block changes nothing for it.
TEST(AttentionTiles, LaterTokensAreNotTouched) {
  const AttentionShape shape = {
      .tokens = 20, .first_position = 128, .heads = 3, .kv_heads = 1, .head_dim = 64};
  Problem problem(shape);
  const std::vector<float> want =
      solve(problem, PagedKv(shape, problem.k, problem.v), kAttentionReference);
  const int64_t clean = 128 + 6;  // tokens before it see nothing of what follows
  for (size_t i = clean * 64; i < problem.k.size(); ++i) problem.k[i] = problem.v[i] = NAN;
  const PagedKv kv(shape, problem.k, problem.v);
  for (const auto& row : rounding()) {
    const std::vector<float> got = solve(problem, kv, row.kernel);
    for (size_t i = 0; i < 6 * 3 * 64; ++i) {
      ASSERT_NEAR(got[i], want[i], rounded_tolerance(shape)) << row.name << " " << i;
    }
    EXPECT_TRUE(isnan(got[6 * 3 * 64])) << row.name;
  }
}

// Logits of 1e4: a clear winner takes it all, nothing overflows.
TEST(AttentionTiles, LargeLogits) {
  const AttentionShape shape = {
      .tokens = 32, .first_position = 128, .heads = 3, .kv_heads = 1, .head_dim = 32};
  Problem problem(shape);
  for (size_t i = 0; i < problem.q.size(); i += 32) problem.q[i] = 1e4f;
  // One key that all heads prefer by far, however its neighbours are rounded.
  for (size_t position = 0; position < 160; ++position) {
    problem.k[position * 32] = position == 70 ? 2.0f : -1.0f;
  }
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : rounding()) {
    expect_near(solve(problem, kv, row.kernel), want, kValueMax * 0x1p-8f, row.name);
  }
}

}  // namespace
}  // namespace optima::kernels
