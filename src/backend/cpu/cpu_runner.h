// Runs programs on the CPU: all threads walk the same list of steps and meet between them.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/kernel_table.h"
#include "backend/cpu/packed_weights.h"
#include "base/allocator.h"
#include "base/thread_pool.h"

namespace optima::backend::cpu {

// What a runner works with; all of it must outlive the runner.
struct RunnerParts {
  ThreadPool& pool;
  Allocator& allocator;
  PackedWeights& packed;  // weights that are not in it are read as the file has them
  Repack repack;          // whether the program's weights are added to it
};

// All memory is taken here; running takes none.
Result<std::unique_ptr<Runner>> create_runner(graph::Program program, const KernelTable& kernels,
                                              const RunnerParts& parts);

}  // namespace optima::backend::cpu
