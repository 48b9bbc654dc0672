#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include "scheduler/queue.h"

namespace optima::scheduler {
namespace {

std::vector<Slot> run(const std::vector<Candidate>& candidates, Limits limits) {
  std::vector<Slot> slots;
  next(candidates, limits, slots);
  return slots;
}

TEST(Scheduler, NothingToDo) {
  EXPECT_TRUE(run({}, {512, 8, 512}).empty());
  EXPECT_TRUE(run({{0, 512}}, {512, 8, 512}).empty());
}

TEST(Scheduler, DecodesComeBeforePrompts) {
  const std::vector<Slot> slots = run({{1000, 512}, {1, 512}, {1, 512}}, {512, 8, 512});
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0].candidate, 1u);
  EXPECT_EQ(slots[1].candidate, 2u);
  EXPECT_EQ(slots[2].candidate, 0u);
  EXPECT_EQ(slots[2].tokens, 510);
}

TEST(Scheduler, PromptsShareTheBudgetInOrderOfArrival) {
  const std::vector<Slot> slots = run({{300, 512}, {300, 512}, {300, 512}}, {512, 8, 512});
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].tokens, 300);
  EXPECT_EQ(slots[1].candidate, 1u);
  EXPECT_EQ(slots[1].tokens, 212);
}

TEST(Scheduler, WhatRunsWholeIsNotCut) {
  const std::vector<Slot> slots =
      run({{300, 512, Chunks::whole}, {300, 512, Chunks::whole}, {200, 512, Chunks::whole}},
          {512, 8, 512});
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].tokens, 300);
  EXPECT_EQ(slots[1].candidate, 2u);
  EXPECT_EQ(slots[1].tokens, 200);
}

TEST(Scheduler, ShortTextsThatRunWholeDoNotStarveALongOne) {
  const std::vector<Slot> slots =
      run({{512, 512, Chunks::whole}, {1, 512, Chunks::whole}}, {512, 8, 512});
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0].candidate, 0u);
  EXPECT_EQ(slots[0].tokens, 512);
}

TEST(Scheduler, ChunkAndSequenceLimitsHold) {
  EXPECT_EQ(run({{1000, 64}}, {512, 8, 512})[0].tokens, 64);
  EXPECT_EQ(run({{1, 64}, {1, 64}, {1, 64}}, {512, 2, 512}).size(), 2u);
  EXPECT_TRUE(run({{5, 64}}, {0, 2, 0}).empty());
  EXPECT_TRUE(run({{5, 64}}, {512, 0, 512}).empty());
}

TEST(Scheduler, PromptsHaveABudgetOfTheirOwn) {
  const std::vector<Slot> slots = run({{1, 512}, {40, 512}, {40, 512}}, {512, 8, 50});
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[1].tokens, 40);
  EXPECT_EQ(slots[2].tokens, 10);
  EXPECT_EQ(run({{1, 512}, {40, 512}}, {512, 8, 0}).size(), 1u) << "decodes alone";
  EXPECT_EQ(run({{40, 512, Chunks::whole}}, {512, 8, 0}).size(), 1u) << "not of what runs whole";
}

TEST(Scheduler, AShortPromptNeedNotWaitForALongOne) {
  std::vector<Slot> slots = run({{4000, 512}, {300, 512}, {30, 512}}, {512, 8, 512});
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0].tokens, 256);
  EXPECT_EQ(slots[1].tokens, 226) << "the second in order is longer";
  EXPECT_EQ(slots[2].tokens, 30);
  slots = run({{1, 512}, {4000, 512}, {30, 512}}, {512, 8, 20});
  ASSERT_EQ(slots.size(), 3u) << "however small the budget is";
  EXPECT_EQ(slots[1].tokens, 10);
  EXPECT_EQ(slots[2].tokens, 10);
  EXPECT_EQ(run({{4000, 512}, {30, 512}}, {512, 8, 1})[0].candidate, 0u);
}

TEST(Scheduler, TheBudgetGoesToTheHigherLevelFirst) {
  const std::vector<Slot> slots =
      run({{4000, 512, Chunks::any, 7}, {30, 512, Chunks::any, 6}}, {512, 8, 512});
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0].tokens, 512);
  EXPECT_EQ(run({{40, 512, Chunks::any, 7}, {30, 512, Chunks::any, 6}}, {512, 8, 512}).size(), 2u);
}

TEST(Scheduler, MoreDecodesThanPlacesTakeTurns) {
  std::vector<Candidate> candidates(5, Candidate{1, 512});
  candidates.push_back({100, 512});
  for (size_t i = 0; i < 5; ++i) candidates[i].ran_last = 5 - i;
  candidates[0].level = 1;
  const std::vector<Slot> slots = run(candidates, {512, 3, 512});
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0].candidate, 0u) << "of a higher level";
  EXPECT_EQ(slots[1].candidate, 4u) << "waited longest";
  EXPECT_EQ(slots[2].candidate, 5u) << "one place is for a prompt";
  EXPECT_EQ(run({{1, 512}, {100, 512}}, {512, 1, 512})[0].candidate, 0u);
}

TEST(Queue, AllOfThemMayWaitOrNone) {
  EXPECT_TRUE(check_queue({1000, 0}, 1000).ok()) << "no limit";
  EXPECT_TRUE(check_queue({2, 5}, 3).ok());
  EXPECT_TRUE(check_queue({5, 5}, 0).ok());
  const Status full = check_queue({2, 5}, 4);
  EXPECT_EQ(full.code(), Code::busy);
  EXPECT_EQ(full.numbers().wanted, 6);
  EXPECT_EQ(full.numbers().available, 3);
  EXPECT_EQ(full.numbers().limit, 5);
  EXPECT_NE(full.message().find("2 requests wait, the limit is 5"), std::string::npos);
  EXPECT_EQ(check_queue({9, 5}, 1).numbers().available, 0) << "more than may wait";
}

}  // namespace
}  // namespace optima::scheduler
