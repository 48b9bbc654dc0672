#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace optima::scheduler
