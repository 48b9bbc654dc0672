// A team of threads with two meeting points: the epoch, where workers wait for the next function,
// and the barrier inside a function. Both wait in three stages. Spinning answers within a cache
// miss while the team is busy; yielding gives the core to a team mate that has none; sleeping
// (a futex behind std::atomic::wait) makes an idle or blocked team free of charge.
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

#include "base/cpu_quota.h"

namespace optima {
namespace {

constexpr int kThreadsMax = 1024;
constexpr int kNiceMax = 19;
constexpr size_t kCacheLine = 64;

using Clock = std::chrono::steady_clock;
constexpr auto kSpinTime = std::chrono::microseconds(30);
// At the barrier team mates are at work, so the answer is near: yield a while before sleeping.
constexpr auto kYieldTime = std::chrono::microseconds(200);

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long to wait for a word to change by each means before the next is tried; then sleep.
struct Patience {
  Clock::duration spin;
  Clock::duration yield;
};

void wait_while_equal(const std::atomic<uint32_t>& word, uint32_t old, Patience patience) {
  constexpr int kSpinsPerLook = 32;  // the clock costs as much as a few pauses
  const auto changed = [&] { return word.load(std::memory_order_acquire) != old; };
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  while (now - start < patience.spin) {
    for (int i = 0; i < kSpinsPerLook; ++i) {
      if (changed()) return;
      cpu_relax();
    }
    now = Clock::now();
  }
  while (now - start < patience.spin + patience.yield) {
    if (changed()) return;
    sched_yield();
    now = Clock::now();
  }
  while (!changed()) word.wait(old, std::memory_order_acquire);
}

// A cpu_set_t of any size; empty when the system does not tell.
std::vector<uint64_t> allowed_cpus() {
  for (size_t words = 16; words <= 4096; words *= 2) {
    std::vector<uint64_t> mask(words);
    const size_t bytes = words * sizeof(uint64_t);
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) == 0) return mask;
    if (errno != EINVAL) break;
  }
  return {};
}

int count_bits(const std::vector<uint64_t>& mask) {
  int count = 0;
  for (const uint64_t word : mask) count += std::popcount(word);
  return count;
}

std::string read_text(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Status check(const ThreadPoolOptions& options) {
  if (options.threads < 0 || options.threads > kThreadsMax) {
    return Status(Code::invalid_argument,
                  "thread pool: threads is " + std::to_string(options.threads) +
                      ", wanted 0 (as many as usable) to " + std::to_string(kThreadsMax),
                  {.wanted = options.threads, .limit = kThreadsMax});
  }
  if (options.priority < 0 || options.priority > kNiceMax) {
    return Status(Code::invalid_argument,
                  "thread pool: priority is " + std::to_string(options.priority) +
                      ", wanted a nice value of 0 to " + std::to_string(kNiceMax),
                  {.wanted = options.priority, .limit = kNiceMax});
  }
  if (!options.affinity.empty() && count_bits(options.affinity) == 0) {
    return Status(Code::invalid_argument,
                  "thread pool: affinity names none of its " +
                      std::to_string(options.affinity.size() * 64) + " CPUs",
                  {.wanted = 0, .limit = static_cast<int64_t>(options.affinity.size() * 64)});
  }
  return Status();
}

int team_size(const ThreadPoolOptions& options) {
  int threads = options.threads;
  if (threads == 0) {
    threads = usable_threads();
    // More threads than the CPUs they are bound to could only wait for each other.
    if (!options.affinity.empty()) threads = std::min(threads, count_bits(options.affinity));
  }
  return std::min(threads, kThreadsMax);
}

}  // namespace

struct ThreadPool::State {
  struct Worker {
    State* state;
    int index;
    pthread_t handle;
    std::string name;  // made beforehand: the thread itself must not allocate
  };

  int threads = 1;
  int priority = 0;
  // More threads than CPUs: the one waited for may need the core that a spin would hold.
  Clock::duration spin = kSpinTime;
  std::vector<Worker> workers;  // sized once: the threads keep pointers into it
  size_t started = 0;

  Function fn = nullptr;
  void* context = nullptr;
  bool stop = false;  // written before the epoch moves, read after
  alignas(kCacheLine) std::atomic<uint32_t> epoch{0};
  alignas(kCacheLine) std::atomic<uint32_t> running{0};
  alignas(kCacheLine) std::atomic<uint32_t> arrived{0};
  alignas(kCacheLine) std::atomic<uint32_t> generation{0};

  void next_epoch() {
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
  }

  void join() {
    stop = true;
    next_epoch();
    for (size_t i = 0; i < started; ++i) pthread_join(workers[i].handle, nullptr);
    started = 0;
  }

  void work(int index) {
    for (uint32_t seen = 0;;) {
      wait_while_equal(epoch, seen, {spin, Clock::duration::zero()});
      ++seen;
      if (stop) return;
      fn(context, index, threads);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }

  static void* enter(void* argument) {
    const Worker& worker = *static_cast<Worker*>(argument);
    pthread_setname_np(pthread_self(), worker.name.c_str());
    if (worker.state->priority > 0) {
      // On Linux the nice value belongs to the thread; raising it is always allowed.
      const int nice_now = getpriority(PRIO_PROCESS, 0);
      setpriority(PRIO_PROCESS, 0, nice_now + worker.state->priority);
    }
    worker.state->work(worker.index);
    return nullptr;
  }

  // 0 or the error number of the thread that could not be made; those before it keep running.
  int start(const std::vector<uint64_t>& affinity) {
    pthread_attr_t attributes;
    if (const int error = pthread_attr_init(&attributes); error != 0) return error;
    int error = 0;
    if (!affinity.empty()) {
      error = pthread_attr_setaffinity_np(&attributes, affinity.size() * sizeof(uint64_t),
                                          reinterpret_cast<const cpu_set_t*>(affinity.data()));
    }
    // Workers inherit the mask of their maker: the host's signals stay with the host's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; error == 0 && i < workers.size(); ++i) {
      error = pthread_create(&workers[i].handle, &attributes, enter, &workers[i]);
      if (error == 0) started = i + 1;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return error;
  }
};

int usable_threads() {
  const int allowed = count_bits(allowed_cpus());
  const int quota = cpu_quota_threads(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  int threads = allowed;
  if (quota > 0 && quota < threads) threads = quota;
  return threads > 1 ? threads : 1;
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(const ThreadPoolOptions& options) {
  OPTIMA_TRY(check(options));
  auto state = std::make_unique<State>();
  state->threads = team_size(options);
  if (state->threads > usable_threads()) state->spin = Clock::duration::zero();
  state->priority = options.priority;
  for (int i = 1; i < state->threads; ++i) {
    state->workers.push_back({state.get(), i, {}, "optima-" + std::to_string(i)});
  }
  if (const int error = state->start(options.affinity); error != 0) {
    const auto have = static_cast<int64_t>(state->started) + 1;
    const std::string text = "thread pool: thread " + std::to_string(have + 1) + " of " +
                             std::to_string(state->threads) + " could not be made (error " +
                             std::to_string(error) + ")";
    const ErrorNumbers numbers = {.wanted = state->threads, .available = have};
    state->join();
    if (error == EINVAL && !options.affinity.empty()) {
      return Status(Code::invalid_argument,
                    text + ": the affinity mask names no CPU that this process may use", numbers);
    }
    return Status(Code::oom_host, text, numbers);
  }
  return std::unique_ptr<ThreadPool>(new ThreadPool(std::move(state)));
}

ThreadPool::ThreadPool(std::unique_ptr<State> state) : state_(std::move(state)) {}

ThreadPool::~ThreadPool() {
  state_->join();
}

int ThreadPool::size() const {
  return state_->threads;
}

void ThreadPool::run(Function fn, void* context) {
  State& state = *state_;
  state.fn = fn;
  state.context = context;
  state.running.store(static_cast<uint32_t>(state.threads - 1), std::memory_order_relaxed);
  if (state.threads > 1) state.next_epoch();
  fn(context, 0, state.threads);
  for (uint32_t left = state.running.load(std::memory_order_acquire); left != 0;
       left = state.running.load(std::memory_order_acquire)) {
    wait_while_equal(state.running, left, {state.spin, kYieldTime});
  }
}

void ThreadPool::barrier() {
  State& state = *state_;
  const uint32_t generation = state.generation.load(std::memory_order_relaxed);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) ==
      static_cast<uint32_t>(state.threads - 1)) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.generation.fetch_add(1, std::memory_order_release);
    state.generation.notify_all();
    return;
  }
  wait_while_equal(state.generation, generation, {state.spin, kYieldTime});
}

}  // namespace optima
