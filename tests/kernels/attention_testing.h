// Attention problems for tests, and the variants that can solve them here: those of this CPU and
// the sixteen-lane code with the tile height of AVX-512, simulated.
//
// In an unnamed namespace, as the kernels' own headers.
#pragma once

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/vec/f32_plain.h"

#include "kernels/attention/attention_cpu.inl.h"
#include "tests/kernels/paged_kv.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

constexpr float kKeyMax = 2.0f;
constexpr float kValueMax = 3.0f;

// The sixteen-lane code with the tile height of AVX-512, run everywhere.
using Sim512 = F32Plain<12, 24>;
constexpr AttentionKernel kSim512 = {run_attention<Sim512>, work_bytes};

void sim512_split(const AttentionArgs& args, int64_t kv_head, int64_t page_begin, int64_t page_end,
                  int64_t split, int64_t splits, float* partial, void* scratch) {
  run_split<Sim512>(args, kv_head, {page_begin, page_end}, split, splits, partial, scratch);
}

void sim512_merge(const AttentionArgs& args, int64_t row_begin, int64_t row_end, int64_t splits,
                  const float* partial) {
  merge_splits<Sim512>(args, {row_begin, row_end}, splits, partial);
}

constexpr AttentionSplitKernel kSimSplit512 = {sim512_split, sim512_merge, work_bytes};

template <typename Kernel>
struct Named {
  const char* name;
  Kernel kernel;
};

// Rows that this CPU can run, and the simulated one.
template <typename Kernel>
std::vector<Named<Kernel>> runnable(const Variants<Kernel>& variants, const Kernel& simulated) {
  std::vector<Named<Kernel>> rows = {{"simulated avx512", simulated}};
  for (const auto& row : runnable_rows(variants)) rows.push_back({row.name, row.fn});
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

}  // namespace
}  // namespace optima::kernels
