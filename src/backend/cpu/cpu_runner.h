// Runs programs on the CPU: all threads walk the same list of steps and meet between them.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/kernel_table.h"
#include "base/allocator.h"
#include "base/thread_pool.h"

namespace optima::backend::cpu {

// `pool` and `allocator` must outlive the runner. All memory is taken here; running takes none.
Result<std::unique_ptr<Runner>> create_runner(graph::Program program, const KernelTable& kernels,
                                              ThreadPool& pool, Allocator& allocator);

}  // namespace optima::backend::cpu
