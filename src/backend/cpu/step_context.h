// What the functions that execute steps see: the arena, the batch, the kernels and this thread's
// share. Internal to backend/cpu.
#pragma once

#include <atomic>
#include <cstdint>

#include "backend/cpu/kernel_table.h"
#include "backend/cpu/packed_weights.h"
#include "base/thread_pool.h"
#include "graph/batch.h"
#include "graph/program.h"

namespace optima::backend::cpu {

// One walk of all threads over a list of steps.
struct Pass {
  const graph::Program* program;
  const graph::Batch* batch;
  const KernelTable* kernels;
  ThreadPool* pool;
  std::byte* arena;
  std::byte* partials;   // split attention: see AttentionSplitKernel
  int64_t output_begin;  // first scored row of this head tile
};

struct Worker {
  int thread;
  int threads;
  std::byte* scratch;             // private
  std::atomic<int64_t>* counter;  // of this step, 0 at its start, shared: next piece of work
  const StepWeights* weights;     // of this step
};

inline float* floats_at(const Pass& pass, const graph::Place& place) {
  return reinterpret_cast<float*>(pass.arena + place.offset);
}

// Rows that a thread computes at a time, so that they stay in its first-level cache.
inline constexpr int64_t kTileRows = 16;

// Whether products of so many rows meet activations in a form of the kernel's own
// (MatmulArgs::arranged) where fewer meet quantised ones.
inline bool reads_arranged(const KernelTable& kernels, int64_t rows) {
  return kernels.matmul.arrange_rows != nullptr && rows >= kernels.matmul.arrange_from;
}

// Parts of an arena begin at cache lines.
constexpr size_t round_line(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Rows of a batch, its first ones, whose attention may be split.
inline constexpr int64_t kSplitTokensMax = 32;

// `rows` = rows of this step (batch tokens or scored rows of the tile).
void run_row_step(const graph::RowStep& step, const Pass& pass, const Worker& worker, int64_t rows);
void run_matmul_step(const graph::MatmulStep& step, const Pass& pass, const Worker& worker,
                     int64_t rows);
void run_expert_matmul_step(const graph::ExpertMatmulStep& step, const Pass& pass,
                            const Worker& worker, int64_t rows);
// Private memory that a thread needs for the step.
size_t expert_scratch_bytes(const graph::ExpertMatmulStep& step, const graph::Program& program,
                            const KernelTable& kernels);
void run_attention_step(const graph::AttentionStep& step, const Pass& pass, const Worker& worker);

}  // namespace optima::backend::cpu
