// A device as the graph sees it: memory for an arena, and programs run over it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "graph/batch.h"
#include "graph/program.h"
#include "kernels/vocabulary/vocabulary.h"

namespace optima::backend {

// Asked between steps by one thread; true = give up (the caller knows why).
using StopCheck = std::function<bool()>;

// Whether weights are held a second time in the form that kernels read fastest, made by passes that
// read them. when_free: if they take at most half of the memory that is known to be free then.
enum class Repack : int32_t { when_free = 0, off = 1, on = 2 };

// Weights of one model in forms of the device's own, shared by the model's runners. Made by the
// device's create function, which alone knows what is inside.
class DeviceWeights {
 public:
  virtual ~DeviceWeights() = default;
  virtual int64_t bytes() const = 0;
};

// Runs one program. Not thread-safe: one run at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  // Writes KV of all tokens of the batch and computes what the head needs. Fails with `cancelled`
  // when `stop` said so: KV beyond the sequences' committed lengths is then undefined.
  virtual Status run_body(const graph::Batch& batch, const StopCheck& stop) = 0;
  // The program's result for batch.output_rows[begin, begin + count), count <= outputs_max:
  // [count, its width], valid until the next call. The batch is that of the last run_body().
  virtual Result<float*> run_head(const graph::Batch& batch, int64_t begin, int64_t count) = 0;
  // The first largest of one row of run_head()'s result; -1 when all are NaN.
  virtual int64_t argmax(const float* row) const = 0;
  // The passes over such a row that sampling makes. Valid beyond the runner's life.
  virtual kernels::VocabularyKernel vocabulary_kernel() const = 0;
  virtual int64_t arena_bytes() const = 0;
};

}  // namespace optima::backend
