// The team runs every function once on every thread, barriers order memory, and waiting is free.
#include "base/thread_pool.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <thread>

namespace optima {
namespace {

std::unique_ptr<ThreadPool> make_pool(int threads) {
  auto pool = ThreadPool::create({.threads = threads});
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return pool.take();
}

int64_t process_cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Thread ids of this process whose name starts with "optima-".
std::set<std::string> worker_tasks() {
  std::set<std::string> tasks;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    std::string name;
    std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm") >> name;
    if (name.rfind("optima-", 0) == 0) tasks.insert(entry->d_name);
  }
  closedir(folder);
  return tasks;
}

std::string status_field(const std::string& task, const std::string& field) {
  std::ifstream file("/proc/self/task/" + task + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0)
      return line.substr(line.find_first_not_of(" \t", field.size() + 1));
  }
  return "";
}

TEST(ThreadPool, RunsOnceOnEveryThreadAndTheCallerIsThreadZero) {
  for (const int threads : {1, 2, 3, 8}) {
    const auto pool = make_pool(threads);
    EXPECT_EQ(pool->size(), threads);
    std::vector<int> calls(static_cast<size_t>(threads));
    std::thread::id first;
    auto count = [&](int thread, int size) {
      EXPECT_EQ(size, threads);
      ++calls[static_cast<size_t>(thread)];
      if (thread == 0) first = std::this_thread::get_id();
    };
    pool->run(count);
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(threads), 1));
    EXPECT_EQ(first, std::this_thread::get_id());
  }
}

// Unsynchronised partial sums: wrong, or reported by TSan, if a run does not order memory.
TEST(ThreadPool, ThousandsOfRunsSumUp) {
  const auto pool = make_pool(4);
  std::vector<int64_t> sums(4);
  const int64_t kRuns = 4000;
  int64_t expected = 0;
  for (int64_t run = 0; run < kRuns; ++run) {
    auto add = [&](int thread, int) { sums[static_cast<size_t>(thread)] += run; };
    pool->run(add);
    expected += 4 * run;
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), expected);
}

void check_barrier_order(int threads, int rounds) {
  const auto pool = make_pool(threads);
  std::vector<int> stage(static_cast<size_t>(threads));
  std::atomic<int> wrong{0};
  auto body = [&](int thread, int size) {
    for (int round = 1; round <= rounds; ++round) {
      stage[static_cast<size_t>(thread)] = round;
      pool->barrier();
      for (int other = 0; other < size; ++other) {
        if (stage[static_cast<size_t>(other)] != round) ++wrong;
      }
      pool->barrier();  // nobody starts the next round while another still looks
    }
  };
  pool->run(body);
  EXPECT_EQ(wrong.load(), 0) << threads << " threads";
}

TEST(ThreadPool, BarrierShowsEveryoneTheWorkBeforeIt) {
  check_barrier_order(1, 10);
  check_barrier_order(2, 2000);
  check_barrier_order(3, 500);
}

TEST(ThreadPool, MoreThreadsThanCoresMakeProgress) {
  check_barrier_order(8, 200);
}

TEST(ThreadPool, SlowThreadIsAwaitedBySleepers) {
  const auto pool = make_pool(3);
  std::atomic<int> done{0};
  auto body = [&](int thread, int) {
    if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    pool->barrier();
    if (thread == 2) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ++done;
  };
  pool->run(body);
  EXPECT_EQ(done.load(), 3);
}

// A use of CPU time, not a speed: 7 spinning workers would use at least one core, 200 ms.
TEST(ThreadPool, IdleTeamUsesNoCpu) {
  const auto pool = make_pool(8);
  auto nothing = [](int, int) {};
  pool->run(nothing);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the spin after the run ends
  const int64_t before = process_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(process_cpu_ns() - before, 20'000'000);
}

TEST(ThreadPool, WakesAfterSleeping) {
  const auto pool = make_pool(3);
  std::atomic<int> calls{0};
  auto count = [&](int, int) { ++calls; };
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool->run(count);
  }
  EXPECT_EQ(calls.load(), 15);
}

TEST(ThreadPool, WorkersAreNamedBlockSignalsAndAreNice) {
  auto pool = ThreadPool::create({.threads = 3, .affinity = {}, .priority = 5});
  ASSERT_TRUE(pool.ok());
  std::atomic<int> nice_sum{0};
  const int mine = getpriority(PRIO_PROCESS, 0);
  auto look = [&](int thread, int) {
    if (thread > 0) nice_sum += getpriority(PRIO_PROCESS, 0) - mine;
  };
  (*pool)->run(look);
  EXPECT_EQ(nice_sum.load(), 2 * std::min(5, 19 - mine));
  const std::set<std::string> tasks = worker_tasks();
  EXPECT_EQ(tasks.size(), 2u);
  for (const std::string& task : tasks) {
    const uint64_t blocked = std::stoull(status_field(task, "SigBlk"), nullptr, 16);
    for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPIPE}) {
      EXPECT_TRUE(blocked >> (signal - 1) & 1) << "signal " << signal;
    }
  }
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_FALSE(sigismember(&after, SIGTERM)) << "the caller's own mask must come back";
}

TEST(ThreadPool, AffinityBindsTheWorkers) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  size_t cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  std::vector<uint64_t> mask(cpu / 64 + 1);
  mask[cpu / 64] = uint64_t{1} << cpu % 64;
  auto pool = ThreadPool::create({.threads = 2, .affinity = mask});
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  for (const std::string& task : worker_tasks()) {
    EXPECT_EQ(status_field(task, "Cpus_allowed_list"), std::to_string(cpu));
  }
  auto one = ThreadPool::create({.threads = 0, .affinity = mask});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ((*one)->size(), 1);
}

TEST(ThreadPool, ManyPoolsLeaveNoThreadBehind) {
  for (int i = 0; i < 50; ++i) make_pool(4);
  // A thread that was joined has ended; the system may list it for a moment longer.
  for (int i = 0; i < 200 && !worker_tasks().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(worker_tasks().empty());
}

TEST(ThreadPool, BadOptionsAreRefusedWithNumbers) {
  const auto refuse = [](const ThreadPoolOptions& options, const char* number) {
    const auto pool = ThreadPool::create(options);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.status().code(), Code::invalid_argument);
    EXPECT_NE(pool.status().message().find(number), std::string::npos) << pool.status().message();
  };
  refuse({.threads = -1}, "-1");
  refuse({.threads = 100000}, "100000");
  refuse({.threads = 1, .affinity = {}, .priority = -3}, "-3");
  refuse({.threads = 1, .affinity = {}, .priority = 20}, "20");
  refuse({.threads = 2, .affinity = {0, 0}}, "128");
  // CPU 1023 exists nowhere near this test.
  std::vector<uint64_t> far(16);
  far[15] = uint64_t{1} << 63;
  refuse({.threads = 2, .affinity = far}, "2 of 2");
  EXPECT_TRUE(worker_tasks().empty());
}

TEST(ThreadPool, UsableThreadsIsAtLeastOneAndWithinAffinity) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_GE(usable_threads(), 1);
  EXPECT_LE(usable_threads(), CPU_COUNT(&allowed));
}

}  // namespace
}  // namespace optima
