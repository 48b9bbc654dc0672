// Weights of a model in the form that the kernels read fastest (kernels/matmul/panel.h), beside the
// file's. Making them costs time and, above all, fresh memory, so the first pass, which the first
// token waits for, makes none; each later pass makes a share of them, the weights that it reads.
// Where results must not depend on what was computed before, the first pass makes all that it
// reads.
#pragma once

#include <map>
#include <memory>
#include <utility>
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

// Shared by the runners of a model, of which one runs at a time; another may be created meanwhile.
// What is used between begin_walk() and its end is not changed by add().
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

  // Chooses those that a walk over these steps makes: it packs their rows before it reads them. As
  // many as have `bytes_max`, and the one that is begun is made whole.
  static void begin_walk(const std::vector<StepWeights>& steps, int64_t bytes_max);
  // The walk went through all steps, or it was given up on the way.
  static void finish_walk(const std::vector<StepWeights>& steps) {
    settle(steps, PackedWeight::State::made);
  }
  static void abandon_walk(const std::vector<StepWeights>& steps) {
    settle(steps, PackedWeight::State::unmade);
  }

 private:
  // Place and number of rows: rows of a fused tensor begin where the tensor does.
  using Key = std::pair<const void*, int64_t>;
  std::map<Key, size_t> missing(const graph::Program& program,
                                const kernels::MatmulKernel& kernel) const;
  PackedWeight* find(const graph::Weight& weight) const;  // null = none
  static void settle(const std::vector<StepWeights>& steps, PackedWeight::State state);

  std::vector<Buffer> memory_;  // one for each add()
  std::map<Key, std::unique_ptr<PackedWeight>> by_rows_;
  int64_t bytes_ = 0;
};

}  // namespace optima::backend::cpu
