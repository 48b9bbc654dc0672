// The step loop of the CPU: one parallel region per pass, a barrier between steps. Thread 0 asks
// the stop check at each step; all threads leave together.
#include "backend/cpu/cpu_runner.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/step_context.h"
#include "base/free_memory.h"
#include "base/overloaded.h"
#include "base/text.h"

namespace optima::backend::cpu {
namespace {

constexpr size_t kNever = SIZE_MAX;

// Scratch that any step of the program may ask of one thread.
size_t scratch_bytes(const graph::Program& program, const KernelTable& kernels) {
  size_t bytes = 64;
  const auto matmul = [&](const graph::MatmulStep& step) {
    if (kernels.matmul.scratch_bytes == nullptr) return;
    bytes = std::max(bytes, kernels.matmul.scratch_bytes(step.rows_max, step.in.width));
  };
  const auto attention = [&](const graph::AttentionStep& step) {
    const auto heads = step.heads;
    if (kernels.attention.scratch_bytes != nullptr)
      bytes = std::max(bytes, kernels.attention.scratch_bytes(heads, step.kv_heads, step.head_dim));
    if (kernels.attention_split != nullptr && kernels.attention_split->scratch_bytes != nullptr)
      bytes = std::max(bytes,
                       kernels.attention_split->scratch_bytes(heads, step.kv_heads, step.head_dim));
  };
  const auto experts = [&](const graph::ExpertMatmulStep& step) {
    bytes = std::max(bytes, expert_scratch_bytes(step, program, kernels));
  };
  for (const auto* steps : {&program.body, &program.head})
    for (const graph::Step& step : *steps)
      std::visit(Overloaded{matmul, attention, experts, [](const graph::RowStep&) {}}, step.work);
  return round_line(bytes);
}

size_t partial_bytes(const graph::Program& program) {
  int64_t floats = 0;
  for (const graph::Step& step : program.body)
    if (const auto* attention = std::get_if<graph::AttentionStep>(&step.work))
      floats = std::max(
          floats, attention->heads * kernels::kAttentionPiecesMax * (attention->head_dim + 2));
  return round_line(static_cast<size_t>(floats * kSplitTokensMax) * sizeof(float));
}

// Whether all quantised weights of the steps have panels.
bool all_in_panels(const std::vector<graph::Step>& steps, const std::vector<StepWeights>& weights) {
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto* step = std::get_if<graph::MatmulStep>(&steps[s].work);
    for (size_t p = 0; step != nullptr && p < step->parts.size(); ++p)
      if (weights[s][p] == nullptr &&
          kernels::uses_quantised_activations(step->parts[p].weight.type))
        return false;
  }
  return true;
}

class CpuRunner final : public Runner {
 public:
  CpuRunner(graph::Program program, const KernelTable& kernels, const RunnerParts& parts)
      : program_(std::move(program)), kernels_(kernels), pool_(parts.pool), packed_(parts.packed) {}

  Status allocate(Allocator& allocator) {
    scratch_bytes_ = scratch_bytes(program_, kernels_);
    const size_t arena = round_line(static_cast<size_t>(program_.arena_bytes));
    const size_t partials = partial_bytes(program_);
    const size_t scratch = scratch_bytes_ * static_cast<size_t>(pool_.size());
    OPTIMA_ASSIGN(memory_, allocator.allocate(arena + partials + scratch, "activations"));
    partials_ = memory_.data() + arena;
    scratch_ = partials_ + partials;
    counters_ =
        std::vector<std::atomic<int64_t>>(std::max(program_.body.size(), program_.head.size()));
    return {};
  }

  // A host that asks for panels gets them or the reason; else they are made when there is room.
  Status pack(Repack repack, Allocator& allocator) {
    const int64_t wanted = packed_.bytes_for(program_, kernels_.matmul);
    const int64_t limit = allocator.limit_bytes();
    const int64_t limit_left = limit > 0 ? limit - allocator.bytes_used() : INT64_MAX;
    const bool room = wanted <= std::min(free_memory_bytes(), limit_left) / 2;
    if (repack == Repack::on || (repack == Repack::when_free && room))
      OPTIMA_TRY(packed_.add(program_, kernels_.matmul, allocator));
    body_weights_ = packed_.of(program_.body);
    head_weights_ = packed_.of(program_.head);
    for (const auto* steps : {&body_weights_, &head_weights_})
      for (const StepWeights& step : *steps)
        for (const PackedWeight* weight : step)
          packed_bytes_ += weight == nullptr ? 0 : weight->bytes;
    // Arranged or not, rows have the same products with panels, but not without.
    if (kernels_.row_sums == kernels::RowSums::alike &&
        !(all_in_panels(program_.body, body_weights_) &&
          all_in_panels(program_.head, head_weights_)))
      kernels_.matmul.arrange_rows = nullptr;
    return {};
  }

  Status run_body(const graph::Batch& batch, const StopCheck& stop) override {
    const auto tokens = static_cast<int64_t>(batch.token_ids.size());
    if (tokens > program_.tokens_max)
      return Status(Code::internal,
                    text("batch of ", tokens, " tokens, the arena holds ", program_.tokens_max),
                    {tokens, -1, program_.tokens_max});
    ++passes_;
    return walk({program_.body, body_weights_, tokens, 0}, batch, &stop);
  }

  Result<float*> run_head(const graph::Batch& batch, int64_t begin, int64_t count) override {
    if (count > program_.outputs_max)
      return Status(Code::internal,
                    text(count, " rows to score, the arena holds ", program_.outputs_max),
                    {count, -1, program_.outputs_max});
    OPTIMA_TRY(walk({program_.head, head_weights_, count, begin}, batch, nullptr));
    return reinterpret_cast<float*>(memory_.data() + program_.result.offset);
  }

  int64_t argmax(const float* row) const override {
    return kernels_.argmax(row, program_.result.width);
  }

  kernels::VocabularyKernel vocabulary_kernel() const override { return kernels_.vocabulary; }

  int64_t arena_bytes() const override { return static_cast<int64_t>(memory_.size()); }

 private:
  struct Walk {
    const std::vector<graph::Step>& steps;
    const std::vector<StepWeights>& weights;
    int64_t rows;
    int64_t output_begin;
  };

  Status walk(const Walk& way, const graph::Batch& batch, const StopCheck* stop) {
    const std::vector<graph::Step>& steps = way.steps;
    for (auto& counter : counters_) counter.store(0, std::memory_order_relaxed);
    stopped_after_.store(kNever, std::memory_order_relaxed);
    const Pass pass{&program_,      &batch,    &kernels_,       &pool_,
                    memory_.data(), partials_, way.output_begin};
    const auto work = [&](int thread, int threads) {
      for (size_t s = 0; s < steps.size(); ++s) {
        const Worker worker{thread, threads,
                            scratch_ + scratch_bytes_ * static_cast<size_t>(thread), &counters_[s],
                            &way.weights[s]};
        run_step(steps[s], pass, worker, way.rows);
        if (thread == 0 && stop != nullptr && *stop && (*stop)())
          stopped_after_.store(s, std::memory_order_relaxed);
        pool_.barrier();
        // Compared with this step, not with "ever": thread 0 may already be a step further.
        if (stopped_after_.load(std::memory_order_relaxed) <= s) return;
      }
    };
    PackedWeights::begin_walk(way.weights, bytes_to_pack());
    pool_.run(work);
    if (stopped_after_.load(std::memory_order_relaxed) != kNever) {
      PackedWeights::abandon_walk(way.weights);
      return Status(Code::cancelled, "stopped between two steps");
    }
    PackedWeights::finish_walk(way.weights);
    return {};
  }

  // How much of the weights a walk packs: nothing in the first pass, which the first token waits
  // for, then a share; all at once where results must not depend on what was computed before.
  int64_t bytes_to_pack() const {
    constexpr int64_t kPasses = 16;
    if (kernels_.row_sums == kernels::RowSums::alike) return packed_bytes_;
    return passes_ > 1 ? packed_bytes_ / kPasses : 0;
  }

  static void run_step(const graph::Step& step, const Pass& pass, const Worker& worker,
                       int64_t rows) {
    std::visit(
        Overloaded{
            [&](const graph::RowStep& work) { run_row_step(work, pass, worker, rows); },
            [&](const graph::MatmulStep& work) { run_matmul_step(work, pass, worker, rows); },
            [&](const graph::ExpertMatmulStep& work) {
              run_expert_matmul_step(work, pass, worker, rows);
            },
            [&](const graph::AttentionStep& work) { run_attention_step(work, pass, worker); },
        },
        step.work);
  }

  graph::Program program_;
  KernelTable kernels_;
  ThreadPool& pool_;
  PackedWeights& packed_;
  std::vector<StepWeights> body_weights_, head_weights_;
  int64_t packed_bytes_ = 0;  // of them
  int64_t passes_ = 0;
  Buffer memory_;
  std::byte* partials_ = nullptr;
  std::byte* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  std::vector<std::atomic<int64_t>> counters_;  // one a step
  std::atomic<size_t> stopped_after_{kNever};   // the step after which all threads leave
};

}  // namespace

Result<std::unique_ptr<Runner>> create_runner(graph::Program program, const KernelTable& kernels,
                                              const RunnerParts& parts) {
  auto runner = std::make_unique<CpuRunner>(std::move(program), kernels, parts);
  OPTIMA_TRY(runner->allocate(parts.allocator));
  OPTIMA_TRY(runner->pack(parts.repack, parts.allocator));
  return std::unique_ptr<Runner>(std::move(runner));
}

}  // namespace optima::backend::cpu
