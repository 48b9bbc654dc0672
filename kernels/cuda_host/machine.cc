// Launches: what is refused before any thread runs, and the blocks' way to the workers.
#include "kernels/cuda_host/machine.h"

#include <stdio.h>

#include <algorithm>
#include <thread>

#include "kernels/cuda_host/worker.h"

namespace optima::cuda_host {
namespace {

ce::Dim block_at(const Shape& shape, int64_t index) {
  const int64_t row = index / shape.grid.x;
  return {static_cast<int>(index % shape.grid.x), static_cast<int>(row % shape.grid.y),
          static_cast<int>(row / shape.grid.y)};
}

// What became of a worker's blocks: of the first that failed, which one and why.
struct Outcome {
  int64_t block = -1;
  std::string text;
};

Outcome run_blocks(Worker& worker, const Shape& shape, int64_t first, int64_t step) {
  const int64_t blocks = static_cast<int64_t>(shape.grid.x) * shape.grid.y * shape.grid.z;
  for (int64_t block = first; block < blocks; block += step) {
    if (!worker.run_block(block_at(shape, block))) return {block, worker.failure()};
  }
  return {};
}

Status refused(const Shape& shape, const char* what, int64_t asked, int64_t limit) {
  char text[256];
  snprintf(text, sizeof text, "%s: launch refused: %s %lld, allowed are 1 to %lld", shape.name,
           what, static_cast<long long>(asked), static_cast<long long>(limit));
  return {text};
}

}  // namespace

Machine::Machine(const MachineOptions& options) : options_(options) {
  for (int i = 0; i < std::max(options.workers, 1); ++i) {
    workers_.push_back(std::make_unique<Worker>(options, i));
  }
}

Machine::~Machine() = default;

Status Machine::check(const Shape& shape) const {
  const Limits& limits = options_.limits;
  const struct {
    const char* what;
    int asked;
    int limit;
  } counts[] = {{"threads", shape.threads, limits.threads},
                {"grid x", shape.grid.x, limits.grid_x},
                {"grid y", shape.grid.y, limits.grid_y},
                {"grid z", shape.grid.z, limits.grid_z}};
  for (const auto& count : counts) {
    if (count.asked < 1 || count.asked > count.limit) {
      return refused(shape, count.what, count.asked, count.limit);
    }
  }
  if (shape.shared_bytes > limits.shared_bytes) {
    return refused(shape, "shared bytes", static_cast<int64_t>(shape.shared_bytes),
                   static_cast<int64_t>(limits.shared_bytes));
  }
  if (current != nullptr) return {std::string(shape.name) + ": launched by a kernel"};
  return {};
}

Status Machine::launch(const Shape& shape, const Body& body) {
  if (++launches_ == options_.failing_launch) {
    return {std::string(shape.name) + ": launch refused: this one was to fail"};
  }
  const Status checked = check(shape);
  if (!checked.ok()) return checked;
  const size_t count = workers_.size();
  for (const auto& worker : workers_) {
    if (!worker->prepare(shape, body)) return {std::string(shape.name) + ": no memory for stacks"};
  }
  std::vector<Outcome> outcomes(count);
  std::vector<std::thread> threads;
  const auto run = [&](size_t i) {
    outcomes[i] =
        run_blocks(*workers_[i], shape, static_cast<int64_t>(i), static_cast<int64_t>(count));
  };
  for (size_t i = 1; i < count; ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  // The first block that failed, whichever worker was faster.
  const Outcome* first = nullptr;
  for (const Outcome& outcome : outcomes) {
    if (outcome.block < 0) continue;
    if (first == nullptr || outcome.block < first->block) first = &outcome;
  }
  return first == nullptr ? Status{} : Status{first->text};
}

}  // namespace optima::cuda_host
