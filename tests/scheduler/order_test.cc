// The order of requests, and that nobody starves: an engine of counts alone is run for as long as
// it takes.
#include "scheduler/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "scheduler/scheduler.h"

namespace optima::scheduler {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(Order, LevelsRiseWithAge) {
  EXPECT_EQ(level({.priority = 3, .submitted_ns = 0}), 3);
  EXPECT_EQ(level({.priority = 0, .submitted_ns = 9 * kSecond}), 0);
  EXPECT_EQ(level({.priority = 0, .submitted_ns = 10 * kSecond}), -1);
  EXPECT_EQ(level({.priority = 0, .submitted_ns = -1}), 1) << "a clock may begin anywhere";
  const Standing old{.priority = 0, .submitted_ns = 0, .arrival = 1};
  EXPECT_TRUE(comes_before({.priority = 5, .submitted_ns = 49 * kSecond, .arrival = 2}, old));
  EXPECT_TRUE(comes_before(old, {.priority = 5, .submitted_ns = 60 * kSecond, .arrival = 2}));
}

TEST(Order, DeadlineThenShareThenArrival) {
  const Standing late{.deadline_ns = 9, .tag = 0, .arrival = 1};
  const Standing soon{.deadline_ns = 5, .tag = 7, .arrival = 2};
  const Standing never{.tag = 0, .arrival = 0};
  EXPECT_TRUE(comes_before(soon, late));
  EXPECT_TRUE(comes_before(late, never));
  EXPECT_TRUE(comes_before({.tag = 3, .arrival = 9}, {.tag = 4, .arrival = 1}));
  EXPECT_TRUE(comes_before({.tag = 3, .arrival = 1}, {.tag = 3, .arrival = 2}));
  EXPECT_TRUE(outranks({.tag = 9, .arrival = 1}, soon)) << "of memory the earlier arrival has more";
  EXPECT_TRUE(outranks({.priority = 1, .arrival = 9}, {.priority = 0, .arrival = 1}));
}

// Strict, total and transitive, whatever the clock says.
TEST(Order, SortsAnything) {
  std::mt19937_64 random(5);
  std::vector<Standing> all;
  for (uint64_t i = 0; i < 200; ++i)
    all.push_back({static_cast<int32_t>(random() % 5) - 2, static_cast<int64_t>(random()) / 4,
                   random() % 2 == 0 ? kNoDeadline : static_cast<int64_t>(random()),
                   static_cast<int64_t>(random() % 4), i});
  for (const auto before : {comes_before, outranks}) {
    std::sort(all.begin(), all.end(), before);
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < all.size(); ++j) EXPECT_EQ(before(all[i], all[j]), i < j);
  }
}

struct Job {
  Standing standing;
  size_t session = 0;
  int64_t pending = 0;
  int64_t first_batch = 0, last_batch = 0;
};

// Prompts alone, 512 tokens in a batch.
class Machine {
 public:
  explicit Machine(size_t sessions, int64_t batch_ns = kSecond / 100)
      : session_tags_(sessions), batch_ns_(batch_ns) {}

  size_t submit(size_t session, int64_t tokens, int32_t priority = 0) {
    const int64_t tag = share_.begin(session_tags_[session]);
    session_tags_[session] = tag;
    jobs_.push_back({{priority, clock_ns_, kNoDeadline, tag, jobs_.size()}, session, tokens});
    active_.push_back(jobs_.size() - 1);
    return jobs_.size() - 1;
  }

  void batch() {
    ++batches_;
    std::sort(active_.begin(), active_.end(), [&](size_t a, size_t b) {
      return comes_before(jobs_[a].standing, jobs_[b].standing);
    });
    std::vector<Candidate> candidates;
    for (const size_t i : active_)
      candidates.push_back({jobs_[i].pending, 512, Chunks::any, level(jobs_[i].standing)});
    std::vector<Slot> slots;
    next(candidates, {512, 64, 512}, slots);
    for (const Slot& slot : slots) {
      Job& job = jobs_[active_[slot.candidate]];
      if (job.first_batch == 0) job.first_batch = batches_;
      job.pending -= slot.tokens;
      job.last_batch = batches_;
      session_tags_[job.session] += slot.tokens;
      share_.serve(job.standing.tag);
    }
    std::erase_if(active_, [&](size_t i) { return jobs_[i].pending == 0; });
    clock_ns_ += batch_ns_;
  }

  const Job& job(size_t i) const { return jobs_[i]; }
  bool done(size_t i) const { return jobs_[i].pending == 0; }
  int64_t batches() const { return batches_; }
  void set_clock(int64_t ns) { clock_ns_ = ns; }

 private:
  std::vector<Job> jobs_;
  std::vector<size_t> active_;
  std::vector<int64_t> session_tags_;
  int64_t batch_ns_;
  FairShare share_;
  int64_t batches_ = 0, clock_ns_ = 0;
};

TEST(Starvation, ASessionThatWasServedMuchYields) {
  Machine machine(2);
  machine.submit(0, 20 * 512);
  for (int i = 0; i < 20; ++i) machine.batch();
  const size_t again = machine.submit(0, 512), other = machine.submit(1, 512);
  machine.batch();
  EXPECT_TRUE(machine.done(other)) << "though it came later";
  machine.batch();
  EXPECT_TRUE(machine.done(again));
}

// One session asks for long prompts without a pause, three for short ones.
TEST(Starvation, AStreamOfLongPromptsGetsItsShareOnly) {
  Machine machine(4);
  std::vector<size_t> last(4);
  std::vector<int64_t> served(4);
  const auto size = [](size_t session) { return session == 0 ? 8 * 512 : 512; };
  for (size_t i = 0; i < 4; ++i) last[i] = machine.submit(i, size(i));
  for (int k = 0; k < 400; ++k) {
    machine.batch();
    for (size_t i = 0; i < 4; ++i) {
      if (!machine.done(last[i])) continue;
      served[i] += size(i);
      last[i] = machine.submit(i, size(i));
    }
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(static_cast<double>(served[i]), 100 * 512, 9 * 512);
}

TEST(Starvation, ManySessionsServeEachOtherInTurn) {
  Machine machine(3);
  std::vector<size_t> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(machine.submit(static_cast<size_t>(i % 3), 512));
  for (int i = 0; i < 300; ++i) machine.batch();
  for (size_t i = 0; i < jobs.size(); ++i)
    EXPECT_NEAR(static_cast<double>(machine.job(jobs[i]).last_batch), static_cast<double>(i + 1),
                3);
}

// Always a fresh prompt of the highest priority, more than a batch can take.
TEST(Starvation, PriorityWaitsForAgeAtMost) {
  Machine machine(64, kSecond);
  const size_t low = machine.submit(0, 2000, 0);
  for (size_t i = 0; !machine.done(low) && i < 2000; ++i) {
    machine.submit(1 + i % 60, 600, kPriorityMax);
    machine.batch();
  }
  EXPECT_TRUE(machine.done(low));
  EXPECT_GT(machine.job(low).last_batch, 900) << "a level is ten seconds";
}

// Short prompts come all the time: the long one takes twice its time, and they need not wait.
TEST(Starvation, ShortPromptsPassALongOneWhichTakesTwiceItsTime) {
  Machine machine(400);
  const size_t long_one = machine.submit(0, 20 * 512);
  std::vector<size_t> short_ones;
  for (size_t i = 1; !machine.done(long_one) && i < 200; ++i) {
    for (int k = 0; k < 3; ++k) short_ones.push_back(machine.submit(i, 100));
    machine.batch();
  }
  EXPECT_LE(machine.job(long_one).last_batch, 40);
  int64_t worst = 0;
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(machine.done(short_ones[i]));
    worst = std::max(worst, machine.job(short_ones[i]).last_batch);
  }
  EXPECT_LE(worst, 6) << "of those of the first four batches";
}

TEST(Starvation, EqualPromptsRunOneAfterTheOther) {
  Machine machine(4);
  std::vector<size_t> jobs;
  for (size_t i = 0; i < 4; ++i) jobs.push_back(machine.submit(i, 2048));
  for (int i = 0; i < 16; ++i) machine.batch();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(machine.job(jobs[i]).last_batch, static_cast<int64_t>(4 * (i + 1)));
}

// Back by an hour, on by a day: the order is another one, and everybody is served.
TEST(Starvation, AClockThatJumpsEndsNobody) {
  Machine machine(3);
  std::mt19937 random(11);
  std::vector<size_t> jobs;
  for (int i = 0; i < 60; ++i) {
    machine.set_clock((static_cast<int64_t>(random() % 90'000) - 3600) * kSecond);
    jobs.push_back(machine.submit(random() % 3, 400, static_cast<int32_t>(random() % 3)));
    machine.batch();
  }
  for (int i = 0; i < 60; ++i) machine.batch();
  for (const size_t job : jobs) EXPECT_TRUE(machine.done(job)) << job;
}

}  // namespace
}  // namespace optima::scheduler
