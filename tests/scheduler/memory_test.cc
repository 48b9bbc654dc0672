// Who gives up memory for whom, and that somebody always gets on.
#include "scheduler/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace optima::scheduler {
namespace {

Holder idle(uint64_t used_last, int64_t bytes = 1) {
  return {Holding::idle, bytes, used_last, {}};
}
Holder waiting(uint64_t arrival, int32_t priority = 0) {
  return {Holding::waiting, 1, 0, {.priority = priority, .arrival = arrival}};
}
Holder running(uint64_t arrival, int32_t priority = 0) {
  return {Holding::running, 1, 0, {.priority = priority, .arrival = arrival}};
}
Taker who_runs(uint64_t arrival, int32_t priority = 0) {
  return {{.priority = priority, .arrival = arrival}, Holding::running};
}
Taker who_waits(uint64_t arrival, int32_t priority = 0) {
  return {{.priority = priority, .arrival = arrival}, Holding::waiting};
}

std::optional<size_t> victim(const std::vector<Holder>& holders, const Taker& taker) {
  return choose_victim(holders, taker);
}

TEST(Memory, WhatIsPromisedIsNotFree) {
  EXPECT_TRUE(may_begin(10, {30, 20}));
  EXPECT_FALSE(may_begin(11, {30, 20}));
  EXPECT_FALSE(may_begin(1, {10, 20})) << "more is promised than there is";
  EXPECT_TRUE(may_begin(0, {0, 0}));
}

TEST(Memory, IdleSessionsGiveFirstThoseUsedLongestAgo) {
  EXPECT_EQ(victim({running(9), waiting(8), idle(5), idle(3), idle(4)}, who_runs(1)), 3u);
  EXPECT_EQ(victim({running(9), waiting(8), idle(3, 0), idle(4)}, who_runs(1)), 3u)
      << "who holds nothing has nothing to give";
  EXPECT_EQ(victim({running(9), waiting(7), waiting(8)}, who_runs(1)), 2u);
}

TEST(Memory, OfRunningRequestsTheLowestAndLastGives) {
  EXPECT_EQ(victim({running(2), running(4), running(3)}, who_runs(1)), 1u);
  EXPECT_EQ(victim({running(2, -1), running(4), running(3)}, who_runs(1)), 0u);
  EXPECT_EQ(victim({running(2, 5), running(4, 5)}, who_runs(1)), std::nullopt) << "higher";
  EXPECT_EQ(victim({running(2), running(4)}, who_runs(9)), std::nullopt) << "earlier";
  EXPECT_EQ(victim({running(2), running(4)}, who_runs(3)), 1u);
}

TEST(Memory, WhoWaitsTakesFromLowerLevelsAlone) {
  EXPECT_EQ(victim({running(2), running(4)}, who_waits(1)), std::nullopt);
  EXPECT_EQ(victim({running(2), running(4, -1)}, who_waits(9)), 1u);
  EXPECT_EQ(victim({waiting(2), waiting(4)}, who_waits(3)), 1u);
  EXPECT_EQ(victim({waiting(2)}, who_waits(3)), std::nullopt);
  EXPECT_EQ(victim({waiting(2)}, who_runs(3)), 0u) << "who runs goes before who waits";
}

TEST(Memory, NobodyIsThere) {
  EXPECT_EQ(victim({}, who_runs(1)), std::nullopt);
}

// Requests that each need up to all of the memory, page by page: as in the engine the one that
// finds no victim gives up what it has. They all end, and the first in order is never stopped.
TEST(Memory, EverybodyEndsHoweverTightItIs) {
  struct Job {
    Standing standing;
    int64_t wanted = 0, held = 0;
    bool runs = false;
    int64_t preempted = 0;
  };
  constexpr int64_t kPages = 10;
  std::mt19937 random(7);
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 40; ++i)
    jobs.push_back({{.priority = static_cast<int32_t>(random() % 3),
                     .submitted_ns = static_cast<int64_t>(random() % 100) * 1'000'000'000,
                     .arrival = i},
                    1 + static_cast<int64_t>(random() % kPages)});
  const auto free = [&] {
    int64_t held = 0;
    for (const Job& job : jobs) held += job.held;
    return kPages - held;
  };
  std::vector<size_t> left(jobs.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  std::sort(left.begin(), left.end(),
            [&](size_t a, size_t b) { return outranks(jobs[a].standing, jobs[b].standing); });
  for (int turn = 0; !left.empty() && turn < 10'000; ++turn) {
    for (const size_t i : left)
      if (!jobs[i].runs && may_begin(1, {free(), 0})) jobs[i].runs = true;
    for (const size_t i : left) {
      Job& job = jobs[i];
      if (!job.runs) continue;
      while (free() == 0) {
        std::vector<Holder> holders;
        for (const Job& other : jobs)
          holders.push_back({Holding::running, &other == &job ? 0 : other.held, 0, other.standing});
        const auto gives = choose_victim(holders, {job.standing, Holding::running});
        Job& victim = gives ? jobs[*gives] : job;
        victim.held = 0;
        victim.runs = false;
        ++victim.preempted;
        if (!gives) break;
      }
      if (job.runs) ++job.held;
    }
    ASSERT_EQ(jobs[left.front()].preempted, 0) << left.front();
    std::erase_if(left, [&](size_t i) {
      if (jobs[i].held < jobs[i].wanted) return false;
      jobs[i].held = 0;
      jobs[i].runs = false;
      return true;
    });
    if (!left.empty()) jobs[left.front()].preempted = 0;  // from now on it is the first
  }
  EXPECT_TRUE(left.empty());
}

}  // namespace
}  // namespace optima::scheduler
