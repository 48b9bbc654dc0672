// One model on one compute path, ready to run: the lowered program with its memory, and the pool
// that the KV pages of all its sessions come from.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/allocator.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/kv_layout.h"
#include "kv/page_pool.h"
#include "model/arch/arch.h"

namespace optima::engine {

// What a runner computes for the scored rows: logits, or the hidden rows below the head.
enum class RunnerResult : uint8_t { logits, hidden };

struct RunnerKind {
  ComputePath path = ComputePath::fast;
  RunnerResult result = RunnerResult::logits;
};

struct ModelRunner {
  KvLayout layout;
  std::unique_ptr<kv::PagePool> pages;
  std::unique_ptr<backend::Runner> runner;
  int64_t vocabulary = 0;
  int64_t result_width = 0;  // floats of a scored row
  int64_t outputs_max = 0;
  int64_t weight_bytes_per_step = 0;
};

// Most tokens of one batch, all sequences together.
inline constexpr int64_t kBatchTokensMax = 512;

Result<std::unique_ptr<ModelRunner>> create_model_runner(const model::Decoder& decoder,
                                                         RunnerKind kind, ThreadPool& pool,
                                                         Allocator& allocator);

}  // namespace optima::engine
