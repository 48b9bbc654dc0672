// Every attention variant against the reference, and the reference against numpy.
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "tests/kernels/attention_testing.h"
#include "tests/kernels/goldens.h"

namespace optima::kernels {
namespace {

// Keys and values of the goldens are f16 numbers, so f16 and f32 pages must both give numpy's
// result; what remains is the rounding to fp32 and the nine digits kept.
TEST(Attention, ReferenceMatchesNumpy) {
  const Goldens goldens;
  for (const char* name :
       {"attention_causal", "attention_gqa", "attention_window", "attention_softcap",
        "attention_all", "attention_decode", "attention_sinks", "attention_sinks_window",
        "attention_sinks_decode", "attention_encoder", "attention_prefix"}) {
    for (const KvType type : {KvType::f16, KvType::f32}) {
      const std::string prefix = std::string(name) + ".";
      const std::vector<double>& numbers = goldens.doubles(prefix + "shape");
      ASSERT_EQ(numbers.size(), 6u);
      AttentionShape shape;
      int64_t* fields[] = {&shape.tokens,   &shape.first_position, &shape.heads,
                           &shape.kv_heads, &shape.head_dim,       &shape.window};
      for (size_t i = 0; i < 6; ++i) *fields[i] = static_cast<int64_t>(numbers[i]);
      shape.softcap = static_cast<float>(goldens.doubles(prefix + "softcap")[0]);
      shape.kv_type = type;
      if (goldens.has(prefix + "mask")) shape.mask = AttentionMask::all;
      Problem problem(shape);
      problem.q = goldens.floats(prefix + "q");
      problem.k = goldens.floats(prefix + "k");
      problem.v = goldens.floats(prefix + "v");
      if (goldens.has(prefix + "sinks")) problem.sinks = goldens.floats(prefix + "sinks");
      const PagedKv kv(shape, problem.k, problem.v);
      expect_close(solve(problem, kv, kAttentionReference), goldens.doubles(prefix + "out"), 1e-7,
                   3e-8);
      for (const auto& row : runnable(attention_variants(), kSim512)) {
        SCOPED_TRACE(row.name);
        expect_close(solve(problem, kv, row.kernel), goldens.doubles(prefix + "out"), 0, 5e-6);
      }
    }
  }
}

// What the bytes of one slot's K or V say, by the drawing in attention.h.
struct Coded {
  const unsigned char* half;
  int64_t head_dim;

  float scale(int64_t index) const {
    uint16_t bits = 0;
    memcpy(&bits, half + 16 * head_dim + 2 * index, sizeof bits);
    return half_to_float(bits);
  }
  float code(int64_t index) const {
    return half[index] < 128 ? half[index] : static_cast<float>(half[index]) - 256.0f;
  }
  float key(int64_t t, int64_t d) const { return code(d * 16 + t) * scale(d / 32 * 16 + t); }
  float value(int64_t t, int64_t d) const {
    return code(t * head_dim + d) * scale(t * ((head_dim + 31) / 32) + d / 32);
  }
};

constexpr KvType kKvTypes[] = {KvType::f16, KvType::f32, KvType::bf16, KvType::q8_0};

// q8_0 pages give what fp32 pages of the same numbers give, and those numbers are near the ones
// stored. An error of half a scale, kKeyMax / 254, in every key moves a logit by at most
// sqrt(head_dim) times that, so a weight by the exponential of twice as much.
TEST(Attention, CodedPagesAreTheNumbersOfTheirBytes) {
  for (const int64_t head_dim : {8, 32, 40, 64, 80, 128, 256}) {
    const AttentionShape shape = {.tokens = 3,
                                  .first_position = 45,
                                  .heads = 2,
                                  .kv_heads = 1,
                                  .head_dim = head_dim,
                                  .kv_type = KvType::q8_0};
    const Problem problem(shape);
    const PagedKv kv(shape, problem.k, problem.v);
    const int64_t half = 16 * head_dim + 32 * ((head_dim + 31) / 32);
    ASSERT_EQ(kv.slot_bytes(), 2 * half);
    ASSERT_EQ(kv.slot_bytes() % 64, 0);
    Problem plain = problem;
    plain.shape.kv_type = KvType::f32;
    for (int64_t position = 0; position < shape.positions(); ++position) {
      const unsigned char* slot = kv.pages()[position / 16] + kv.offset();
      for (int64_t d = 0; d < head_dim; ++d) {
        const auto at = static_cast<size_t>(position * head_dim + d);
        plain.k[at] = Coded{slot, head_dim}.key(position % 16, d);
        plain.v[at] = Coded{slot + half, head_dim}.value(position % 16, d);
      }
    }
    const std::vector<float> got = solve(problem, kv, kAttentionReference);
    const PagedKv plain_kv(plain.shape, plain.k, plain.v);
    expect_near(got, solve(plain, plain_kv, kAttentionReference), 1e-6f, "numbers of the bytes");
    const PagedKv whole_kv(plain.shape, problem.k, problem.v);
    const float logit = sqrtf(static_cast<float>(head_dim)) * kKeyMax / 253.0f;
    const float allowed = kValueMax * (expm1f(2 * logit) + 1 / 253.0f);
    expect_near(got, solve(plain, whole_kv, kAttentionReference), allowed, "numbers stored");
  }
}

TEST(Attention, TokenCountsAroundPagesAndBlocks) {
  for (const int64_t first : {0, 1, 15, 16, 17, 61, 130}) {
    for (const int64_t tokens : {1, 2, 3, 15, 16, 17, 33, 70}) {
      check({.tokens = tokens, .first_position = first, .heads = 3, .kv_heads = 1, .head_dim = 16});
    }
  }
}

TEST(Attention, HeadSizes) {
  for (const int64_t head_dim : {8, 16, 24, 32, 40, 64, 72, 80, 96, 112, 128, 192, 256, 512}) {
    for (const KvType type : kKvTypes) {
      check({.tokens = 19,
             .first_position = 37,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = head_dim,
             .kv_type = type});
      check({.tokens = 1,
             .first_position = 90,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = head_dim,
             .kv_type = type});
    }
  }
}

TEST(Attention, GroupSizes) {
  for (const int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 25}) {
    for (const KvType type : {KvType::f16, KvType::bf16, KvType::q8_0}) {
      AttentionShape shape = {
          .tokens = 18, .first_position = 50, .heads = group * 2, .kv_heads = 2, .head_dim = 32};
      shape.kv_type = type;
      check(shape);
      shape.tokens = 1;
      shape.first_position = 201;
      check(shape);
    }
  }
}

TEST(Attention, Windows) {
  for (const int64_t window : {1, 2, 15, 16, 17, 40, 64, 1000}) {
    for (const int64_t first : {0, 5, 100, 128}) {
      check({.tokens = 37,
             .first_position = first,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = 24,
             .window = window,
             .kv_type = first == 100 ? KvType::q8_0 : KvType::f16});
      check({.tokens = 1,
             .first_position = first,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = 24,
             .window = window,
             .kv_type = first == 128 ? KvType::q8_0
                        : first == 5 ? KvType::bf16
                                     : KvType::f16});
    }
  }
}

TEST(Attention, Softcap) {
  for (const float softcap : {0.5f, 5.0f, 50.0f}) {
    check({.tokens = 20,
           .first_position = 70,
           .heads = 4,
           .kv_heads = 2,
           .head_dim = 64,
           .softcap = softcap});
    check({.tokens = 1,
           .first_position = 70,
           .heads = 4,
           .kv_heads = 2,
           .head_dim = 64,
           .window = 30,
           .softcap = softcap,
           .kv_type = KvType::q8_0});
  }
}

TEST(Attention, ItemsInAnyOrderAndPieces) {
  const AttentionShape shape = {.tokens = 40, .first_position = 9, .heads = 6, .kv_heads = 3};
  const Problem problem(shape);
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    std::vector<float> out(want.size(), 99.0f);
    const AttentionArgs args = attention_args(shape, kv, problem.q.data(), out.data());
    // One byte off: the scratch need not be aligned.
    std::vector<unsigned char> scratch(row.kernel.scratch_bytes(6, 3, 64) + 16);
    for (int64_t item = attention_items(args) - 1; item >= 0; --item) {
      row.kernel.run(args, item, item + 1, scratch.data());
    }
    expect_near(out, want, tolerance(shape), row.name);
  }
}

// Rows of q and out may be parts of wider rows; what lies between stays as it was.
TEST(Attention, StridesAndNeighbours) {
  const AttentionShape shape = {.tokens = 21, .heads = 2, .kv_heads = 1, .head_dim = 40};
  const Problem problem(shape);
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  const int64_t stride = 97;
  std::vector<float> q(static_cast<size_t>(shape.tokens * stride));
  for (int64_t token = 0; token < shape.tokens; ++token) {
    std::copy_n(problem.q.begin() + token * 80, 80, q.begin() + token * stride);
  }
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    std::vector<float> out(q.size(), 99.0f);
    AttentionArgs args = attention_args(shape, kv, q.data(), out.data());
    args.q_stride = args.out_stride = stride;
    run_all_items(row.kernel, args);
    for (int64_t token = 0; token < shape.tokens; ++token) {
      for (int64_t i = 0; i < stride; ++i) {
        const float got = out[static_cast<size_t>(token * stride + i)];
        const float expected = i < 80 ? want[static_cast<size_t>(token * 80 + i)] : 99.0f;
        ASSERT_NEAR(got, expected, i < 80 ? tolerance(shape) : 0) << row.name;
      }
    }
  }
}

// All logits -inf: zero, no NaN. Some: they weigh nothing. NaN or +inf: NaN, in that row only.
TEST(Attention, InfinityAndNan) {
  const AttentionShape shape = {.tokens = 1,
                                .first_position = 80,
                                .heads = 4,
                                .kv_heads = 1,
                                .head_dim = 32,
                                .kv_type = KvType::f32};
  Problem problem(shape);
  // k[0] of every key is 1, so q[0] = -inf makes each logit of that head -inf.
  for (size_t i = 0; i < problem.k.size(); i += 32) problem.k[i] = 1.0f;
  problem.q[0] = -INFINITY;
  problem.q[32] = NAN;
  problem.q[64] = INFINITY;
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (size_t i = 0; i < 128; ++i) {
    if (i < 32) {
      EXPECT_EQ(want[i], 0.0f);
    } else {
      EXPECT_EQ(isnan(want[i]), i < 96) << i;
    }
  }
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    expect_near(solve(problem, kv, row.kernel), want, tolerance(shape), row.name);
  }
  for (const auto& row : runnable(attention_split_variants(), kSimSplit512)) {
    expect_near(solve_split(problem, kv, row.kernel, 3), want, tolerance(shape), row.name);
  }
}

// A block of several tokens, with keys that alone are masked by infinity.
TEST(Attention, MaskedKeysWeighNothing) {
  const AttentionShape shape = {.tokens = 20,
                                .first_position = 30,
                                .heads = 2,
                                .kv_heads = 1,
                                .head_dim = 16,
                                .kv_type = KvType::f32};
  Problem problem(shape);
  for (size_t i = 0; i < problem.q.size(); i += 16) problem.q[i] = 1.0f;
  for (size_t position = 0; position < 50; position += 3) problem.k[position * 16] = -INFINITY;
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const float value : want) ASSERT_TRUE(isfinite(value));
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    expect_near(solve(problem, kv, row.kernel), want, tolerance(shape), row.name);
  }
}

// Large logits must not overflow, and one that dwarfs the rest takes it all.
TEST(Attention, ExtremeLogits) {
  const AttentionShape shape = {.tokens = 1,
                                .first_position = 40,
                                .heads = 1,
                                .kv_heads = 1,
                                .head_dim = 8,
                                .kv_type = KvType::f32};
  Problem problem(shape);
  for (float& value : problem.q) value *= 1e4f;
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    // Logits of 1e4 carry errors of 1e-3: only a clear winner can be compared.
    expect_near(solve(problem, kv, row.kernel), want, 0.02f, row.name);
  }
}

TEST(Attention, SplitsThatSeeNothingAreZeroAndIgnored) {
  const AttentionShape shape = {
      .tokens = 1, .first_position = 20, .heads = 2, .kv_heads = 1, .head_dim = 16};
  const Problem problem(shape);
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : runnable(attention_split_variants(), kSimSplit512)) {
    expect_near(solve_split(problem, kv, row.kernel, 50), want, tolerance(shape), row.name);
  }
}

TEST(Attention, Sinks) {
  for (const int64_t head_dim : {16, 24, 80, 128, 256}) {
    for (const KvType type : kKvTypes) {
      for (const int64_t window : {0, 1, 21}) {
        for (const int64_t tokens : {1, 19}) {
          check({.tokens = tokens,
                 .first_position = 61,
                 .heads = 6,
                 .kv_heads = 2,
                 .head_dim = head_dim,
                 .window = window,
                 .softcap = window == 21 ? 3.0f : 0.0f,
                 .kv_type = type,
                 .sinks = true});
        }
      }
    }
  }
}

TEST(Attention, AllPositions) {
  for (const int64_t first : {0, 1, 15, 16, 61, 130}) {
    for (const int64_t tokens : {1, 2, 15, 16, 17, 33, 70}) {
      check({.tokens = tokens,
             .first_position = first,
             .heads = 4,
             .kv_heads = 2,
             .head_dim = first == 61 ? 80 : 24,
             .softcap = first == 15 ? 2.0f : 0.0f,
             .kv_type = first == 16  ? KvType::f32
                        : first == 1 ? KvType::q8_0
                                     : KvType::f16,
             .mask = AttentionMask::all,
             .sinks = first == 130});
    }
  }
}

// One head a kind of sink: -inf is no sink, a huge one takes it all, NaN and +inf give NaN, a very
// low one changes nothing.
TEST(Attention, ExtremeSinks) {
  for (const int64_t tokens : {1, 20}) {
    const AttentionShape shape = {.tokens = tokens,
                                  .first_position = 70,
                                  .heads = 5,
                                  .kv_heads = 1,
                                  .head_dim = 16,
                                  .kv_type = KvType::f32};
    Problem problem(shape);
    const PagedKv kv(shape, problem.k, problem.v);
    const std::vector<float> plain = solve(problem, kv, kAttentionReference);
    problem.sinks = {-INFINITY, 1e30f, NAN, INFINITY, -1e30f};
    std::vector<float> want = plain;
    for (size_t i = 0; i < want.size(); ++i) {
      const size_t head = i / 16 % 5;
      if (head == 1) want[i] = 0;
      if (head == 2 || head == 3) want[i] = NAN;
    }
    expect_near(solve(problem, kv, kAttentionReference), want, 1e-6f, "reference");
    for (const auto& row : runnable(attention_variants(), kSim512)) {
      expect_near(solve(problem, kv, row.kernel), want, tolerance(shape), row.name);
    }
    if (tokens > 1) continue;
    for (const auto& row : runnable(attention_split_variants(), kSimSplit512)) {
      expect_near(solve_split(problem, kv, row.kernel, 4), want, tolerance(shape), row.name);
    }
  }
}

// All logits are -inf: the sink alone has weight, and it has no value.
TEST(Attention, SinksOverNothingSeenGiveZeros) {
  const AttentionShape shape = {.tokens = 1,
                                .first_position = 40,
                                .heads = 2,
                                .kv_heads = 1,
                                .head_dim = 8,
                                .kv_type = KvType::f32};
  Problem problem(shape);
  for (size_t i = 0; i < problem.k.size(); i += 8) problem.k[i] = 1.0f;
  problem.q[0] = problem.q[8] = -INFINITY;
  problem.sinks = {-3.0f, -INFINITY};
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want(16, 0.0f);
  expect_near(solve(problem, kv, kAttentionReference), want, 0, "reference");
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    expect_near(solve(problem, kv, row.kernel), want, 0, row.name);
  }
  for (const auto& row : runnable(attention_split_variants(), kSimSplit512)) {
    expect_near(solve_split(problem, kv, row.kernel, 3), want, 0, row.name);
  }
}

// Most splits are empty; the sink must count once, not once a split.
TEST(Attention, SinksEnterAMergeOnce) {
  const AttentionShape shape = {.tokens = 1,
                                .first_position = 20,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 24,
                                .window = 9,
                                .sinks = true};
  const Problem problem(shape);
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : runnable(attention_split_variants(), kSimSplit512)) {
    for (const int64_t splits : {1, 2, 50}) {
      expect_near(solve_split(problem, kv, row.kernel, splits), want, tolerance(shape), row.name);
    }
  }
}

}  // namespace
}  // namespace optima::kernels
