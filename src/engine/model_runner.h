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

struct ModelRunner {
  KvLayout layout;
  std::unique_ptr<kv::PagePool> pages;
  std::unique_ptr<backend::Runner> runner;
  int64_t vocabulary = 0;
  int64_t outputs_max = 0;
  int64_t weight_bytes_per_step = 0;
};

// Most tokens of one batch, all sequences together.
inline constexpr int64_t kBatchTokensMax = 512;

Result<std::unique_ptr<ModelRunner>> create_model_runner(const model::Decoder& decoder,
                                                         ComputePath path, ThreadPool& pool,
                                                         Allocator& allocator);

}  // namespace optima::engine
