// The stream of what becomes known: its events in order, and a mirror that is kept by them alone
// and equals the index after any work, also when its reader was too slow.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "kv/page_table.h"

namespace optima::kv {
namespace {

std::vector<int32_t> numbers(int32_t first, int32_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<int32_t>(i);
  return out;
}

void fill(PageTable& table, const std::vector<int32_t>& tokens) {
  const int64_t missing = static_cast<int64_t>(tokens.size()) - table.length();
  ASSERT_TRUE(table.reserve(missing).ok());
  table.commit(missing, tokens);
}

// What a router knows: the blocks by hash, with what proves the hash.
struct Mirror {
  std::set<std::pair<BlockHash, int32_t>> pages;
  uint64_t lost = 0;

  void apply(const KvEvent& event) {
    if (event.type == KvEventType::cleared) pages.clear();
    if (event.type == KvEventType::removed) {
      EXPECT_EQ(pages.erase({event.hash, event.group}), 1u) << "known before";
    }
    if (event.type == KvEventType::stored) {
      EXPECT_TRUE(pages.insert({event.hash, event.group}).second) << "not known before";
      EXPECT_EQ(event.hash, block_hash(event.parent, event.tokens));
    }
  }
  // Reads at most `count` events; whether there may be more.
  bool read(PagePool& pool, size_t count) {
    std::vector<KvEvent> events(count);
    const KvEventsTaken taken = pool.take_events(events);
    lost += taken.lost;
    for (size_t i = 0; i < taken.count; ++i) apply(events[i]);
    return taken.count == count;
  }
  void read_all(PagePool& pool) {
    while (read(pool, 7)) {
    }
  }
  void expect_index(const PagePool& pool) const {
    std::set<std::pair<BlockHash, int32_t>> index;
    for (const IndexedPage& page : pool.view().indexed) index.insert({page.block, page.group});
    EXPECT_EQ(pages, index);
  }
};

class KvEvents : public testing::Test {
 protected:
  Allocator allocator_{{}, 0};
  std::vector<KvGroup> groups_ = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 192, 40}};
};

TEST_F(KvEvents, TellWhatIsStoredRemovedAndCleared) {
  const std::vector<KvGroup> one = {groups_[0]};
  PagePool pool(allocator_, {0, 1 << 20, 16});
  const std::vector<int32_t> tokens = numbers(0, 40);
  PageTable table(pool, one, 9);
  fill(table, tokens);
  std::vector<KvEvent> events(8);
  ASSERT_EQ(pool.take_events(events).count, 2u);
  EXPECT_EQ(events[0].type, KvEventType::stored);
  EXPECT_EQ(events[0].parent, 9u);
  EXPECT_EQ(events[0].tokens[15], 15);
  EXPECT_EQ(events[1].parent, events[0].hash);
  EXPECT_EQ(events[1].tokens[0], 16);
  EXPECT_EQ(pool.take_events(events).count, 0u) << "once";

  PageTable same(pool, one, 9);
  fill(same, tokens);
  EXPECT_EQ(pool.take_events(events).count, 0u) << "known already";
  same.truncate(0);
  table.truncate(20);
  ASSERT_TRUE(table.reserve(1).ok());
  ASSERT_EQ(pool.take_events(events).count, 1u) << "the second page is written to";
  EXPECT_EQ(events[0].type, KvEventType::removed);
  table.truncate(0);
  EXPECT_EQ(pool.take_events(events).count, 0u) << "cached pages are known";
  pool.trim();
  ASSERT_EQ(pool.take_events(events).count, 2u);
  EXPECT_EQ(events[0].type, KvEventType::removed);
  EXPECT_EQ(events[1].type, KvEventType::cleared);
}

TEST_F(KvEvents, ASlowReaderIsToldAndBeginsAnew) {
  PagePool pool(allocator_, {0, 1 << 20, 4});
  PageTable table(pool, groups_);
  Mirror mirror;
  fill(table, numbers(0, 32));
  mirror.read(pool, 1);
  fill(table, numbers(0, 160));
  EXPECT_EQ(mirror.lost, 0u);
  mirror.read_all(pool);
  EXPECT_EQ(mirror.lost, 19u) << "of two groups ten blocks each, one event was read";
  mirror.expect_index(pool);
  // A second loss in the middle of the restart.
  fill(table, numbers(0, 320));
  mirror.read(pool, 3);
  fill(table, numbers(0, 480));
  mirror.read_all(pool);
  mirror.expect_index(pool);
  EXPECT_GT(mirror.lost, 60u);
}

TEST_F(KvEvents, NobodyAskedForNone) {
  PagePool pool(allocator_, {0, 1 << 20});
  PageTable table(pool, groups_);
  fill(table, numbers(0, 160));
  std::vector<KvEvent> events(8);
  const KvEventsTaken taken = pool.take_events(events);
  EXPECT_EQ(taken.count, 0u);
  EXPECT_EQ(taken.lost, 0u);
}

TEST_F(KvEvents, AMirrorEqualsTheIndexAfterRandomWork) {
  for (const int64_t capacity : {10'000, 12}) {
    PagePool pool(allocator_, {120 * 64, 40 * 64, capacity});
    std::mt19937 random(5);
    std::vector<PageTable> tables;
    Mirror mirror;
    for (int step = 0; step < 4000; ++step) {
      if (random() % 3 == 0 || tables.empty()) {
        if (tables.size() > 4) tables.erase(tables.begin() + static_cast<ptrdiff_t>(random() % 4));
        PageTable table(pool, groups_, random() % 2);
        const auto tokens = numbers(static_cast<int32_t>(random() % 3), 20 + random() % 60);
        if (table.adopt(tokens, static_cast<int64_t>(tokens.size())) >= 0 &&
            table.reserve(static_cast<int64_t>(tokens.size()) - table.length()).ok())
          table.commit(static_cast<int64_t>(tokens.size()) - table.length(), tokens);
        tables.push_back(std::move(table));
      } else {
        PageTable& table = tables[random() % tables.size()];
        table.truncate(table.reusable(table.length() / 2));
        if (random() % 40 == 0) pool.trim();
      }
      if (random() % 4 == 0) mirror.read(pool, random() % 20);
      if (step % 500 != 499) continue;
      mirror.read_all(pool);
      mirror.expect_index(pool);
    }
    EXPECT_EQ(mirror.lost > 0, capacity == 12) << mirror.lost;
  }
}

// ---- why nothing was found ----

TEST_F(KvEvents, WhyAPromptFoundNothing) {
  const std::vector<int32_t> tokens = numbers(0, 64);
  PagePool pool(allocator_, {0, 1 << 20});
  EXPECT_EQ(pool.why_missed(1, tokens, groups_), Miss::unknown);
  PageTable table(pool, groups_, 1);
  fill(table, tokens);
  EXPECT_EQ(pool.why_missed(2, tokens, groups_), Miss::elsewhere);
  table.truncate(0);
  pool.trim();
  EXPECT_EQ(pool.why_missed(1, tokens, groups_), Miss::reclaimed);
  EXPECT_EQ(pool.why_missed(2, tokens, groups_), Miss::unknown);

  PagePool keeps_nothing(allocator_, {0, 0});
  PageTable held(keeps_nothing, groups_, 1);
  fill(held, numbers(0, 100));
  PageTable shorter(keeps_nothing, groups_, 1);
  EXPECT_EQ(shorter.adopt(tokens, 64), 0);
  EXPECT_EQ(keeps_nothing.why_missed(1, tokens, groups_), Miss::window) << "which has moved on";
  held.truncate(0);
  EXPECT_EQ(keeps_nothing.why_missed(1, tokens, groups_), Miss::not_kept);
}

}  // namespace
}  // namespace optima::kv
