// The device that the host shim plays: its limits, the order in which it runs threads, and the
// launches themselves. A launch runs to its end before it returns, and whatever goes wrong in it is
// the text of its status: a test of a broken kernel reads it and goes on.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/ce_types.h"

namespace optima::cuda_host {

class Worker;

// In which order the threads of a block take their turns, from one meeting to the next. A kernel
// whose result depends on it has a race.
enum class Schedule : int32_t { forward = 0, reverse = 1, seeded = 2 };

// What a launch is refused for. Those of the weakest device that is supported (compute capability
// 7.5).
struct Limits {
  int threads = 1024;
  size_t static_shared_bytes = 48 * 1024;
  size_t shared_bytes = 64 * 1024;  // static and dynamic together
  int grid_x = 0x7fffffff;
  int grid_y = 65535;
  int grid_z = 65535;
};

struct MachineOptions {
  Schedule schedule = Schedule::forward;
  uint32_t seed = 1;  // of Schedule::seeded
  int workers = 1;  // threads of the operating system; worker w runs the blocks w, w + workers, …
  Limits limits = {};
  int64_t failing_launch = 0;  // this launch of the machine, from 1 on, is refused; 0 = none
};

struct Status {
  std::string text;  // empty = done
  bool ok() const { return text.empty(); }
};

// A kernel with its arguments.
struct Body {
  void (*call)(const void* kernel);
  const void* kernel;
};

// What a launch asks for, checked against the limits.
struct Shape {
  const char* name;
  ce::Dim grid;
  int threads;
  size_t shared_bytes;
};

// Plays the part of a stream: launches happen one after another. Not for use by several threads at
// once.
class Machine {
 public:
  explicit Machine(const MachineOptions& options = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Status launch(const Shape& shape, const Body& body);
  int64_t launches() const { return launches_; }

 private:
  Status check(const Shape& shape) const;

  MachineOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int64_t launches_ = 0;
};

}  // namespace optima::cuda_host
