// Attention problems for tests, and the variants that can solve them here: those of this CPU and
// the sixteen-lane code with the tile height of AVX-512, simulated.
//
// In an unnamed namespace, as the kernels' own headers.
#pragma once

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/vec/f32_plain.h"

#include "kernels/attention/attention_cpu.inl.h"
#include "kernels/vec/register_tiles.inl.h"
#include "kernels/vec/sim512.h"
#include "tests/kernels/bf16_simulation.inl.h"
#include "tests/kernels/paged_kv.h"
#include "tests/kernels/tiles_simulation.inl.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

constexpr float kKeyMax = 2.0f;
constexpr float kValueMax = 3.0f;

// The sixteen-lane code with the tile height of AVX-512, run everywhere.
using Plain512 = F32Plain<12, 24>;
constexpr AttentionKernel kSim512 = {run_attention<Plain512>, work_bytes};

void sim512_split(const AttentionArgs& args, int64_t kv_head, int64_t page_begin, int64_t page_end,
                  int64_t split, int64_t splits, float* partial, void* scratch) {
  run_split<Plain512>(args, kv_head, {page_begin, page_end}, split, splits, partial, scratch);
}

void sim512_merge(const AttentionArgs& args, int64_t row_begin, int64_t row_end, int64_t splits,
                  const float* partial) {
  merge_splits<Plain512>(args, {row_begin, row_end}, splits, partial);
}

constexpr AttentionSplitKernel kSimSplit512 = {sim512_split, sim512_merge, work_bytes};

template <typename Kernel>
struct Named {
  const char* name;
  Kernel kernel;
};

// Whether a row for these instructions rounds to bfloat16.
constexpr bool rounds(IsaMask isa) {
  return (isa & (kIsaAmx | kIsaAvx512Bf16)) != 0;
}

// Rows that this CPU can run and that compute with fp32, and the simulated one.
template <typename Kernel>
std::vector<Named<Kernel>> runnable(const Variants<Kernel>& variants, const Kernel& simulated) {
  std::vector<Named<Kernel>> rows = {{"simulated avx512", simulated}};
  for (const auto& row : runnable_rows(variants)) {
    if (!rounds(row.isa)) rows.push_back({row.name, row.fn});
  }
  return rows;
}

// Those that round to bfloat16, real and simulated.
inline std::vector<Named<AttentionKernel>> rounding() {
  std::vector<Named<AttentionKernel>> rows = {
      {"simulated tiles", {run_attention<Plain512, SimulatedTiles>, work_bytes_with_tiles}},
      {"simulated register tiles",
       {run_attention<Plain512, RegisterTiles<Sim512, SimulatedBf16, SimulatedTiles, 0>>,
        work_bytes_with_tiles}}};
  for (const auto& row : runnable_rows(attention_variants())) {
    if (rounds(row.isa)) rows.push_back({row.name, row.fn});
  }
  return rows;
}

struct Problem {
  explicit Problem(const AttentionShape& of, uint32_t seed = 1) : shape(of) {
    std::mt19937 random(seed);
    q = random_floats(random, shape.tokens * shape.heads * shape.head_dim);
    k = random_floats(random, shape.positions() * shape.kv_heads * shape.head_dim, kKeyMax);
    v = random_floats(random, shape.positions() * shape.kv_heads * shape.head_dim, kValueMax);
    if (shape.sinks) sinks = random_floats(random, shape.heads, 4);
  }
  AttentionArgs args(const PagedKv& kv, float* out) const {
    AttentionArgs filled = attention_args(shape, kv, q.data(), out);
    filled.sinks = sinks.empty() ? nullptr : sinks.data();
    return filled;
  }
  AttentionShape shape;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> sinks;
};

std::vector<float> solve(const Problem& problem, const PagedKv& kv, const AttentionKernel& kernel) {
  std::vector<float> out(problem.q.size(), 99.0f);
  run_all_items(kernel, problem.args(kv, out.data()));
  return out;
}

std::string describe(const AttentionShape& s) {
  return "tokens " + std::to_string(s.tokens) + " first " + std::to_string(s.first_position) +
         " heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " dim " +
         std::to_string(s.head_dim) + " window " + std::to_string(s.window) + " softcap " +
         std::to_string(s.softcap) + " KV type " + std::to_string(static_cast<int>(s.kv_type)) +
         (s.mask == AttentionMask::all ? " all" : "") + (s.sinks ? " sinks" : "");
}

// A logit is a sum of head_dim products of values below 1 (q) and 2 (k), scaled: its
// rounding error is near sqrt(head_dim) eps times the sum of magnitudes. A weight's relative error
// is twice that plus the error of exp; the result is a mean of V under these weights, so it errs
// by max|V| times as much.
inline float tolerance(const AttentionShape& shape) {
  const float eps = 6e-8f;
  const float magnitude = sqrtf(static_cast<float>(shape.head_dim)) * kKeyMax;
  const float logit = sqrtf(static_cast<float>(shape.head_dim)) * eps * magnitude;
  return kValueMax * (2 * logit + 2e-6f);
}

// The same where q, k, v and weights are rounded to bfloat16, each by 2^-9 of itself at the most:
// in RMS 0.41 of that. So the products of a logit, below 2/3 in RMS where scale is 1 /
// sqrt(head_dim), err by 2/3 * sqrt(2) * 0.41 * 2^-9 together; eight times as much is allowed, and
// the whole of 2^-9 for a weight and for a value.
inline float rounded_tolerance(const AttentionShape& shape) {
  if (shape.kv_type == KvType::f32) return tolerance(shape);
  const float logit = 8 * 0.39f * 0x1p-9f;
  return tolerance(shape) + kValueMax * (2 * logit + 0x1p-8f);
}

inline std::vector<float> solve_split(const Problem& problem, const PagedKv& kv,
                                      const AttentionSplitKernel& kernel, int64_t splits) {
  const AttentionShape& shape = problem.shape;
  std::vector<float> out(problem.q.size(), 99.0f);
  const AttentionArgs args = problem.args(kv, out.data());
  std::vector<float> partial(
      static_cast<size_t>(shape.tokens * shape.heads * splits * (shape.head_dim + 2)), 77.0f);
  std::vector<unsigned char> scratch(
      kernel.scratch_bytes(shape.heads, shape.kv_heads, shape.head_dim));
  for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    for (int64_t split = 0; split < splits; ++split) {
      kernel.run(args, kv_head, shape.pages() * split / splits,
                 shape.pages() * (split + 1) / splits, split, splits, partial.data(),
                 scratch.data());
    }
  }
  kernel.merge(args, 0, shape.tokens * shape.heads, splits, partial.data());
  return out;
}

inline void expect_near(const std::vector<float>& got, const std::vector<float>& want,
                        float allowed, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    ASSERT_NEAR(got[i], want[i], allowed) << what << ", value " << i;
  }
}

// Every variant, whole and split, against the reference.
inline void check(const AttentionShape& shape, uint32_t seed = 1) {
  const Problem problem(shape, seed);
  const PagedKv kv(shape, problem.k, problem.v);
  const std::vector<float> want = solve(problem, kv, kAttentionReference);
  for (const auto& row : runnable(attention_variants(), kSim512)) {
    expect_near(solve(problem, kv, row.kernel), want, tolerance(shape),
                std::string(row.name) + ": " + describe(shape));
  }
  for (const auto& row : rounding()) {
    expect_near(solve(problem, kv, row.kernel), want, rounded_tolerance(shape),
                std::string(row.name) + ": " + describe(shape));
  }
  if (shape.tokens > kQueryBlock) return;
  for (const auto& row : runnable(attention_split_variants(), kSimSplit512)) {
    for (const int64_t splits : {1, 2, 3, 7}) {
      expect_near(solve_split(problem, kv, row.kernel, splits), want, tolerance(shape),
                  std::string(row.name) + " x" + std::to_string(splits) + ": " + describe(shape));
    }
  }
}

}  // namespace
}  // namespace optima::kernels
