// One model on one compute path, ready to run: the lowered program with its memory.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/allocator.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/kv_layout.h"
#include "kv/page_pool.h"
#include "model/arch/arch.h"
#include "scheduler/pace.h"

namespace optima::engine {

// What a runner computes for the scored rows: logits, or the hidden rows below the head.
enum class RunnerResult : uint8_t { logits, hidden };

struct RunnerKind {
  ComputePath path = ComputePath::fast;
  RunnerResult result = RunnerResult::logits;
  kernels::KvType kv_type = kernels::KvType::f16;  // but for the reference path, which has f32
};

// Most tokens of one batch, all sequences together.
inline constexpr int64_t kBatchTokensMax = 512;
// A running answer's token may take twice as long while others' prompts are computed.
inline constexpr scheduler::PaceLimits kPace{kBatchTokensMax, 2, 2.0};

struct ModelRunner {
  ModelRunner() = default;
  ~ModelRunner() {
    if (pages != nullptr) pages->trim();  // what it has left there nobody can use
  }
  KvLayout layout;
  std::shared_ptr<kv::PagePool> pages;  // the engine's
  kv::BlockHash root = 0;               // its own: KV of other runners is of no use
  std::unique_ptr<backend::Runner> runner;
  int64_t vocabulary = 0;
  int64_t result_width = 0;  // floats of a scored row
  int64_t outputs_max = 0;
  int64_t weight_bytes_per_step = 0;
  scheduler::Pace pace{kPace};  // under the hub's lock
};

// Of the engine, and of the model, for all its runners.
struct RunnerResources {
  ThreadPool& pool;
  Allocator& allocator;
  std::shared_ptr<kv::PagePool> pages;
};
struct ModelWeights {
  const model::Decoder& decoder;
  Repack repack;
  backend::DeviceWeights& packed;  // of create_device_weights()
};

std::unique_ptr<backend::DeviceWeights> create_device_weights();

Result<std::unique_ptr<ModelRunner>> create_model_runner(const ModelWeights& model, RunnerKind kind,
                                                         const RunnerResources& resources);

}  // namespace optima::engine
