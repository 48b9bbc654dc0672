// The page table against definitions spelled out position by position: what must be held, what the
// window bound is, what may be reused after a cut, and that a failed reserve() changes nothing.
#include "kv/page_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace optima::kv {
namespace {

KvGroup group_of(int64_t slot_bytes, int64_t window) {
  return {.members = {{0, 0}, {1, 0}}, .slot_bytes = slot_bytes, .window = window};
}

// A query at `position` sees the positions (position - window, position]; all below it for 0.
bool seen(int64_t position, int64_t window, int64_t other) {
  return other <= position && (window == 0 || other > position - window);
}

bool held(const PageTable& table, size_t group, int64_t position) {
  const auto pages = table.pages(group);
  const auto page = static_cast<size_t>(position / kPageTokens);
  return page < pages.size() && pages[page] != nullptr;
}

int64_t pages_held(const PageTable& table, size_t group) {
  const auto pages = table.pages(group);
  return static_cast<int64_t>(pages.size()) - std::count(pages.begin(), pages.end(), nullptr);
}

// Whether the next query could be computed at `length`: all it sees of the past is there, and so
// is the page it would write to, unless that page is yet to be acquired.
bool continuable(const PageTable& table, const std::vector<KvGroup>& groups, int64_t length) {
  if (length == 0) return true;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int64_t p = 0; p < length; ++p)
      if (seen(length, groups[g].window, p) && !held(table, g, p)) return false;
    if (length % kPageTokens != 0 && !held(table, g, length)) return false;
  }
  return true;
}

int64_t naive_reusable(const PageTable& table, const std::vector<KvGroup>& groups, int64_t length) {
  int64_t l = std::min(length, table.length());
  while (!continuable(table, groups, l)) --l;
  return l;
}

TEST(PageTable, HoldsWhatQueriesSeeAndStaysWithinTheWindowBound) {
  for (const int64_t window : {1, 2, 15, 16, 17, 64, 100}) {
    for (const int64_t chunk : {1, 7, 16, 33, 64}) {
      Allocator allocator({}, 0);
      PagePool pool(allocator, {});
      const std::vector<KvGroup> groups = {group_of(512, 0), group_of(2048, window)};
      PageTable table(pool, groups);
      const int64_t bound =
          (window + kPageTokens - 1) / kPageTokens + (chunk + kPageTokens - 1) / kPageTokens + 1;
      for (int step = 0; step < 20; ++step) {
        ASSERT_TRUE(table.reserve(chunk).ok());
        for (int64_t query = table.length(); query < table.length() + chunk; ++query)
          for (size_t g = 0; g < groups.size(); ++g)
            for (int64_t p = 0; p <= query; ++p)
              ASSERT_TRUE(!seen(query, groups[g].window, p) || held(table, g, p));
        ASSERT_LE(pages_held(table, 1), bound) << "window " << window << ", chunk " << chunk;
        ASSERT_EQ(table.bytes_held(), pages_held(table, 0) * 1024 + pages_held(table, 1) * 4096);
        ASSERT_EQ(table.bytes_held(), pool.counts().bytes_held);
        table.commit(chunk);
      }
      ASSERT_EQ(table.length(), 20 * chunk);
    }
  }
}

TEST(PageTable, FreesBeforeItAcquires) {
  // The budget is exactly the bound: acquiring first would overrun it.
  constexpr int64_t kWindow = 64, kChunk = 32, kBound = 4 + 2 + 1;
  Allocator allocator({}, 0);
  const std::vector<KvGroup> groups = {group_of(2048, kWindow)};
  PagePool pool(allocator, {kBound * groups[0].page_bytes(), 0});
  PageTable table(pool, groups);
  for (int step = 0; step < 50; ++step) {
    ASSERT_TRUE(table.reserve(kChunk).ok());
    table.commit(kChunk);
  }
}

TEST(PageTable, ReserveIsAllGroupsOrNone) {
  Allocator allocator({}, 0);
  const std::vector<KvGroup> groups = {group_of(512, 0), group_of(2048, 0)};
  PagePool pool(allocator, {3 * (1024 + 4096), 0});
  PageTable table(pool, groups);
  ASSERT_TRUE(table.reserve(20).ok());
  table.commit(20);
  const int64_t before = table.bytes_held();
  const Status status = table.reserve(45);  // three more pages of each group; one of each is left
  EXPECT_EQ(status.code(), Code::oom_host);
  EXPECT_EQ(status.numbers().wanted, 3);
  EXPECT_EQ(status.numbers().available, 0);
  EXPECT_EQ(status.message().substr(0, 42), "KV group 1 of 2: 3 KV pages of 4096 bytes ");
  EXPECT_EQ(table.bytes_held(), before);
  EXPECT_EQ(pool.counts().bytes_held, before);
  EXPECT_EQ(table.length(), 20);
  EXPECT_TRUE(table.reserve(28).ok());
  table.abort();
  EXPECT_EQ(table.bytes_held(), before);
  EXPECT_EQ(table.reserve(-1).code(), Code::invalid_argument);
  EXPECT_EQ(table.reserve(INT64_MAX).code(), Code::invalid_argument);
}

TEST(PageTable, AbortKeepsWhatIsStillWanted) {
  Allocator allocator({}, 0);
  PagePool pool(allocator, {0, 0});
  const std::vector<KvGroup> groups = {group_of(64, 0), group_of(64, 20)};
  PageTable table(pool, groups);
  ASSERT_TRUE(table.reserve(30).ok());
  table.commit(30);
  ASSERT_TRUE(table.reserve(100).ok());
  table.abort(10);
  EXPECT_EQ(pages_held(table, 0), 3) << "of 40 positions";
  table.commit(10);
  table.abort();
  EXPECT_EQ(pages_held(table, 0), 3);
}

TEST(PageTable, KeepsPagesWhereTheyAre) {
  Allocator allocator({}, 0);
  const std::vector<KvGroup> groups = {group_of(512, 0)};
  PagePool pool(allocator, {});
  PageTable table(pool, groups);
  ASSERT_TRUE(table.reserve(40).ok());
  const std::vector<unsigned char*> before(table.pages(0).begin(), table.pages(0).end());
  ASSERT_TRUE(table.reserve(400).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), table.pages(0).begin()));
  ASSERT_TRUE(table.reserve(8).ok());  // less than is reserved: nothing changes
  EXPECT_EQ(table.pages(0).size(), 25u);
}

TEST(PageTable, ReusableAndTruncateAgreeWithTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<KvGroup> groups;
    const int64_t windows[] = {0, 1, 2, 16, 17, 40, 130};
    for (int g = 0; g < 1 + round % 3; ++g)
      groups.push_back(group_of(256 << (g % 2), windows[random() % 7]));
    Allocator allocator({}, 0);
    PagePool pool(allocator, {});
    PageTable table(pool, groups);
    for (int step = 0; step < 25; ++step) {
      const int64_t tokens = 1 + static_cast<int64_t>(random() % 60);
      ASSERT_TRUE(table.reserve(tokens).ok());
      if (random() % 4 == 0) {
        table.abort();
      } else {
        table.commit(tokens);
      }
      if (random() % 3 != 0) continue;
      const auto aim = static_cast<int64_t>(random() % static_cast<unsigned>(table.length() + 20));
      const int64_t length = table.reusable(aim);
      ASSERT_EQ(length, naive_reusable(table, groups, aim)) << "aim " << aim;
      table.truncate(length);
      ASSERT_EQ(table.length(), length);
      ASSERT_EQ(table.bytes_held(), pool.counts().bytes_held);
      ASSERT_TRUE(table.reserve(1).ok());
      for (size_t g = 0; g < groups.size(); ++g)
        for (int64_t p = 0; p <= length; ++p)
          ASSERT_TRUE(!seen(length, groups[g].window, p) || held(table, g, p));
    }
    table.truncate(0);
    ASSERT_EQ(pool.counts().pages_held, 0);
  }
}

TEST(PageTable, AFailingAllocatorLeavesItUsable) {
  // The limit moves through all points at which one of the groups runs out.
  for (int64_t limit = 0; limit < 40; ++limit) {
    Allocator allocator({}, limit * 4096 + 64);
    const std::vector<KvGroup> groups = {group_of(1024, 0), group_of(2048, 32), group_of(512, 0)};
    PagePool pool(allocator, {});
    PageTable table(pool, groups);
    Status status;
    while (status.ok()) {
      const int64_t before = pool.counts().pages_held;
      status = table.reserve(16);
      if (status.ok()) {
        table.commit(16);
      } else {
        ASSERT_EQ(status.code(), Code::oom_host);
        ASSERT_LE(pool.counts().pages_held, before);  // less where a window was let go of
      }
    }
    ASSERT_EQ(table.bytes_held(), pool.counts().bytes_held);
    table.truncate(0);
    ASSERT_EQ(table.reserve(16).ok(), limit >= 2) << limit;
  }
}

// ---- forks ----

TEST(PageTableFork, CopiesNothingUntilOneWrites) {
  Allocator allocator({}, 0);
  const std::vector<KvGroup> groups = {group_of(512, 0), group_of(2048, 32)};
  PagePool pool(allocator, {});
  PageTable table(pool, groups);
  ASSERT_TRUE(table.reserve(40).ok());
  table.commit(40);
  const PoolCounts before = pool.counts();
  PageTable fork = table.fork();
  EXPECT_EQ(fork.length(), 40);
  EXPECT_EQ(pool.counts().pages_held, before.pages_held);
  EXPECT_EQ(pool.counts().bytes_held, before.bytes_held);
  EXPECT_EQ(pool.counts().references, 2 * before.references);
  for (size_t g = 0; g < 2; ++g)
    EXPECT_TRUE(std::ranges::equal(fork.pages(g), table.pages(g))) << "group " << g;

  ASSERT_TRUE(fork.reserve(1).ok());  // the third page of both groups, half written, is copied
  EXPECT_EQ(pool.counts().pages_held, before.pages_held + 2);
  EXPECT_NE(fork.pages(0)[2], table.pages(0)[2]);
  EXPECT_EQ(fork.pages(0)[1], table.pages(0)[1]);
  const auto* kept = table.pages(0)[2];
  ASSERT_TRUE(table.reserve(1).ok());  // alone now: written in place
  EXPECT_EQ(table.pages(0)[2], kept);
  EXPECT_EQ(pool.counts().pages_held, before.pages_held + 2);
}

TEST(PageTableFork, FullPagesNeedNoCopy) {
  Allocator allocator({}, 0);
  const std::vector<KvGroup> groups = {group_of(512, 0)};
  PagePool pool(allocator, {4 * groups[0].page_bytes(), 0});
  PageTable table(pool, groups);
  ASSERT_TRUE(table.reserve(32).ok());
  table.commit(32);
  PageTable fork = table.fork();
  ASSERT_TRUE(fork.reserve(16).ok());
  ASSERT_TRUE(table.reserve(16).ok());
  EXPECT_EQ(table.pages(0)[1], fork.pages(0)[1]);
  EXPECT_NE(table.pages(0)[2], fork.pages(0)[2]);
  // A cut into a shared page makes it one that has to be copied, and there is no room for that.
  fork.abort();
  fork.truncate(20);
  ASSERT_TRUE(table.reserve(32).ok());
  const Status status = fork.reserve(1);
  EXPECT_EQ(status.code(), Code::oom_host) << status.message();
  EXPECT_EQ(fork.length(), 20);
  EXPECT_EQ(table.pages(0)[1], fork.pages(0)[1]);
}

// Random appends, cuts, forks and deaths of a family of tables, each byte of a position marked with
// the history that wrote it: nobody sees what another has written, and nothing is left behind.
TEST(PageTableFork, AFamilyOfTablesKeepsItsTokensApart) {
  std::mt19937 random(7);
  Allocator allocator({}, 0);
  const std::vector<KvGroup> groups = {{{{0, 0}}, 16, 0}, {{{1, 0}}, 16, 24}};
  {
    PagePool pool(allocator, {});
    struct Member {
      PageTable table;
      std::vector<unsigned char> history;  // one byte for each position
    };
    std::vector<Member> family;
    family.push_back({PageTable(pool, groups), {}});
    unsigned char next = 1;
    const auto check = [&](const Member& member) {
      ASSERT_EQ(member.table.length(), static_cast<int64_t>(member.history.size()));
      for (size_t g = 0; g < groups.size(); ++g)
        for (int64_t p = 0; p < member.table.length(); ++p)
          if (held(member.table, g, p)) {
            ASSERT_EQ(member.table.pages(g)[static_cast<size_t>(p / 16)][p % 16],
                      member.history[static_cast<size_t>(p)])
                << "group " << g << " position " << p;
          }
    };
    for (int step = 0; step < 20000; ++step) {
      const size_t at = random() % family.size();
      Member& member = family[at];
      const uint32_t action = random() % 10;
      if (action < 6) {
        const auto tokens = static_cast<int64_t>(random() % 20);
        ASSERT_TRUE(member.table.reserve(tokens).ok());
        if (random() % 8 == 0) {
          member.table.abort();
          continue;
        }
        for (int64_t i = 0; i < tokens; ++i, ++next) {
          const auto position = static_cast<int64_t>(member.history.size());
          for (size_t g = 0; g < groups.size(); ++g)
            member.table.pages(g)[static_cast<size_t>(position / 16)][position % 16] = next;
          member.history.push_back(next);
        }
        member.table.commit(tokens);
      } else if (action < 8) {
        const int64_t length =
            member.table.reusable(static_cast<int64_t>(random() % (member.history.size() + 1)));
        member.table.truncate(length);
        member.history.resize(static_cast<size_t>(length));
      } else if (action == 8 && family.size() < 12) {
        family.push_back({member.table.fork(), member.history});
      } else if (family.size() > 1) {
        family.erase(family.begin() + static_cast<ptrdiff_t>(at));
      }
      if (step % 50 != 0) continue;
      for (const Member& each : family) ASSERT_NO_FATAL_FAILURE(check(each));
    }
    family.clear();
    EXPECT_EQ(pool.counts().pages_held, 0);
    EXPECT_EQ(pool.counts().references, 0);
  }
  EXPECT_EQ(allocator.bytes_used(), 0);
}

}  // namespace
}  // namespace optima::kv
