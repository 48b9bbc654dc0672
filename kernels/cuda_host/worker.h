// One thread of the operating system that runs blocks, one at a time: its fibers, the block's
// barrier, the meetings of its warps, its shared memory, its copies under way.
//
// Threads are taken in turns. A turn lasts until the thread has to wait for another one; those that
// wait are passed over until who they wait for has come. A round in which nobody could be taken is
// a deadlock.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/cuda_host/fiber.h"
#include "kernels/cuda_host/machine.h"
#include "kernels/cuda_host/words.h"

namespace optima::cuda_host {

// A copy that was asked for and has not happened.
struct Copy {
  void* to;
  const void* from;
  int source_bytes;  // the others of the sixteen become zeros
  int64_t group;     // number of the commit that closes its group
};

class Thread {
 public:
  static constexpr int kCopiesMax = 64;
  enum class State : uint8_t { ready, at_barrier, at_meeting, done };

  Thread(Worker& worker, int index);

  View view;
  Worker& worker;
  State state = State::done;
  // Where it waits, and for whom.
  Site site = {};
  WarpWord word = WarpWord::syncwarp;
  unsigned mask = 0;
  Copy copies[kCopiesMax];
  int copy_count = 0;
  int64_t commits = 0;
  Fiber fiber;

 private:
  static void run(void* thread);
};

// Where the lanes of one mask meet. Two sets of deposits take turns: who comes for the next time
// may write before the last one has read what was left for this time.
struct Meeting {
  unsigned mask = 0;
  unsigned arrived = 0;
  unsigned round = 0;
  WarpWord word = WarpWord::syncwarp;
  Site site = {};
  Deposit deposits[2][ce::kWarp];
  char tags[2] = {};  // what orders its lanes, for ThreadSanitizer
};

class Worker {
 public:
  Worker(const MachineOptions& options, int index);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Makes the fibers of a launch. False: no memory for their stacks.
  bool prepare(const Shape& shape, const Body& body);
  // Runs a block to its end; false when it failed, and failure() says how.
  bool run_block(ce::Dim block);
  const char* failure() const { return failure_; }

  // Called on fibers, by the words of kernels/cuda_host/words.h.
  void barrier(Thread& self, Site site);
  const Deposit* meet(Thread& self, const WarpCall& call, const Deposit& mine);
  void pause(Thread& self);
  void* shared(Thread& self, const void* key, size_t bytes);
  unsigned char* dynamic_shared() { return dynamic_.get(); }
  bool is_shared(const void* from, size_t bytes) const;
  // The thread ends here, and the launch with it.
  [[noreturn]] void fail(Thread& self, Site site, const char* what);

  void run_kernel(Thread& self);

 private:
  struct Array {
    const void* key;
    size_t bytes;
    std::unique_ptr<unsigned char[]> memory;
  };
  enum class Round : uint8_t { advanced, paused, stuck };

  Thread& thread_at(size_t index) { return *threads_[index]; }
  size_t thread_count() const { return static_cast<size_t>(shape_.threads); }
  void start_block(ce::Dim block);
  Round run_round();
  void order_threads();
  void wait(Thread& self, Thread::State state);
  Meeting& meeting(int warp, unsigned mask);
  void report_deadlock();
  void report_spinning();
  void abandon();

  MachineOptions options_;
  Shape shape_ = {};
  Body body_ = {};
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<size_t> order_;
  std::minstd_rand random_;
  ce::Dim block_;
  int done_ = 0;
  bool round_advanced_ = false;

  int barrier_arrived_ = 0;
  unsigned barrier_round_ = 0;
  Site barrier_site_ = {};
  int barrier_first_ = 0;
  char barrier_tags_[2] = {};
  // Two, or a thread that ends would be ordered before one that begins.
  char begin_tag_ = 0;
  char end_tag_ = 0;

  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings_;  // of each warp
  std::vector<Array> arrays_;
  std::unique_ptr<unsigned char[]> dynamic_;
  size_t static_bytes_ = 0;

  bool failed_ = false;
  char failure_[512] = {};
};

}  // namespace optima::cuda_host
