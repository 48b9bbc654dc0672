// A fixed team of threads that runs one function at a time, all threads at once (the caller is
// thread 0). Between calls the others spin briefly, then sleep: an idle pool uses no CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"

namespace optima {

struct ThreadPoolOptions {
  int threads = 0;                  // 0 = usable_threads(), at most the CPUs of `affinity`
  std::vector<uint64_t> affinity{}; // bit mask of CPUs, 64 a word; empty = inherit
  int priority = 0;                 // nice value added to the workers, 0..19
};

// CPUs this process may use: affinity mask ∩ cgroup CPU quota (v1 and v2), at least 1.
int usable_threads();

class ThreadPool {
 public:
  // Starts threads - 1 workers; they block all signals. Fails with invalid_argument (numbers in
  // the text) or, when the system refuses a thread, with oom_host.
  static Result<std::unique_ptr<ThreadPool>> create(const ThreadPoolOptions& options);
  ~ThreadPool();  // Joins the workers; no run() may be in progress.

  int size() const;

  // Calls fn(context, thread, size()) once on every thread and returns when all have returned.
  // One run() at a time; fn must not throw and must not call run().
  using Function = void (*)(void* context, int thread, int threads);
  void run(Function fn, void* context);

  // Template sugar over run() for a callable `void(int thread, int threads)`.
  template <typename Callable>
  void run(const Callable& callable) {
    run([](void* context, int thread, int threads) {
          (*static_cast<const Callable*>(context))(thread, threads);
        },
        const_cast<Callable*>(&callable));
  }

  // Only inside run(), by every thread of the team: returns once all have arrived. Spins, then
  // yields and sleeps, so that more threads than cores lose at most a factor of two.
  void barrier();

 private:
  struct State;
  explicit ThreadPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace optima
