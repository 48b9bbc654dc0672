// Weights of a model in the form that the kernels read fastest (kernels/matmul/panel.h), beside the
// file's. Making them costs time and, above all, fresh memory, so the first pass, which the first
// token waits for, makes none; each later pass makes a share of them, the weights that it reads.
// Where results must not depend on what was computed before, the first pass makes all that it
// reads.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "base/allocator.h"
#include "graph/program.h"
#include "kernels/matmul/matmul.h"

namespace optima::backend::cpu {

struct PackedWeight {
  enum class State : uint8_t { unmade, making, made };
  uint8_t* panels = nullptr;
  int64_t bytes = 0;
  State state = State::unmade;  // changes between passes only
};

// The packed weight of each part of a step, null where there is none.
using StepWeights = std::vector<PackedWeight*>;

// How many of the weights that a walk reads it makes, if they are not made yet.
enum class Making : uint8_t { share, all };

// Shared by the runners of a model, of which one runs at a time. Not thread-safe.
class PackedWeights final : public DeviceWeights {
 public:
  // Bytes that add() would take.
  int64_t bytes_for(const graph::Program& program, const kernels::MatmulKernel& kernel) const;
  // Memory for the weights of the program's products that the kernel has panels for and that are
  // not here yet: all, or none when it fails (oom_host).
  Status add(const graph::Program& program, const kernels::MatmulKernel& kernel,
             Allocator& allocator);
  // Of each step.
  std::vector<StepWeights> of(const std::vector<graph::Step>& steps) const;
  int64_t bytes() const override { return bytes_; }

  void count_pass() { ++passes_; }
  // Chooses those that a walk over these steps makes: it packs their rows before it reads them.
  void begin_walk(const std::vector<StepWeights>& steps, Making making);
  // The walk went through all steps, or it was given up on the way.
  void finish_walk(const std::vector<StepWeights>& steps) {
    settle(steps, PackedWeight::State::made);
  }
  void abandon_walk(const std::vector<StepWeights>& steps) {
    settle(steps, PackedWeight::State::unmade);
  }

 private:
  PackedWeight* find(const graph::Weight& weight) const;  // null = none
  static void settle(const std::vector<StepWeights>& steps, PackedWeight::State state);

  std::vector<Buffer> memory_;  // one for each add()
  std::unordered_map<const void*, std::unique_ptr<PackedWeight>> by_data_;
  int64_t bytes_ = 0;
  int64_t passes_ = 0;
};

}  // namespace optima::backend::cpu
