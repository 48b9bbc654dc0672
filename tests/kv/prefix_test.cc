// Pages that are found by their tokens: what is shared, what is kept when nobody holds it, and what
// goes first when memory is short.
#include <gtest/gtest.h>

#include <algorithm>

#include "kv/page_table.h"

namespace optima::kv {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 40;

std::vector<int32_t> numbers(int32_t first, int64_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<int32_t>(i);
  return out;
}

// Grows the table to all of `tokens`.
void fill(PageTable& table, const std::vector<int32_t>& tokens) {
  const int64_t missing = static_cast<int64_t>(tokens.size()) - table.length();
  ASSERT_TRUE(table.reserve(missing).ok());
  table.commit(missing, tokens);
}

class Prefixes : public testing::Test {
 protected:
  Allocator allocator_{{}, 0};
  std::vector<KvGroup> groups_ = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 192, 40}};
};

TEST_F(Prefixes, WhatOneComputedAnotherTakes) {
  PagePool pool(allocator_, {0, kUnlimited});
  PageTable first(pool, groups_);
  const std::vector<int32_t> tokens = numbers(0, 70);
  fill(first, tokens);
  PageTable second(pool, groups_);
  std::vector<int32_t> other = tokens;
  other[60] = -1;
  EXPECT_EQ(second.adopt(other, 70), 48) << "three whole blocks are equal";
  EXPECT_TRUE(std::ranges::equal(second.pages(0), first.pages(0).first(3)));
  EXPECT_NE(second.pages(1)[0], nullptr) << "a query at 48 sees from 9 on";
  EXPECT_EQ(first.pages(1)[0], nullptr) << "one at 70 does not";
  EXPECT_EQ(second.adopt(other, 70), 48) << "nothing more is found";

  PageTable third(pool, groups_);
  EXPECT_EQ(third.adopt(tokens, 63), 48) << "the limit is kept";
  EXPECT_EQ(third.adopt(tokens, 64), 64);
  PageTable elsewhere(pool, groups_, 7);
  EXPECT_EQ(elsewhere.adopt(tokens, 70), 0) << "another root";
}

// A windowed page that is gone makes the blocks before useless, the later ones stay usable.
TEST_F(Prefixes, WindowsNeedTheirWindowAlone) {
  PagePool pool(allocator_, {0, 0});
  PageTable first(pool, groups_);
  const std::vector<int32_t> tokens = numbers(0, 100);
  fill(first, tokens);  // holds of group 1 what a query at 100 sees: 61 and later
  PageTable second(pool, groups_);
  EXPECT_EQ(second.adopt(tokens, 100), 96);
  PageTable third(pool, groups_);
  EXPECT_EQ(third.adopt(tokens, 95), 0) << "a query at 80 sees from 41 on, which is gone";
}

TEST_F(Prefixes, OutliveTheTableThatComputedThem) {
  const std::vector<int32_t> tokens = numbers(0, 64);
  PagePool pool(allocator_, {0, kUnlimited});
  {
    PageTable table(pool, {groups_});
    fill(table, tokens);
    EXPECT_EQ(pool.counts().pages_cached, 1) << "of the window";
  }
  const PoolCounts cached = pool.counts();
  EXPECT_EQ(cached.bytes_held, 0);
  EXPECT_EQ(cached.references, 0);
  EXPECT_EQ(cached.pages_cached, 8);
  EXPECT_EQ(cached.pages_sealed, 8);
  EXPECT_EQ(cached.bytes_cached, 4 * 64 + 4 * 192);
  PageTable again(pool, groups_);
  EXPECT_EQ(again.adopt(tokens, 64), 64);
  EXPECT_EQ(pool.counts().pages_held, 4 + 3);
  EXPECT_EQ(pool.counts().pages_cached, 1);
  again.truncate(0);
  pool.trim();
  EXPECT_EQ(pool.counts().bytes_cached, 0);
  EXPECT_EQ(pool.counts().pages_sealed, 0);
  EXPECT_EQ(again.adopt(tokens, 64), 0);
  pool.trim();
  EXPECT_EQ(allocator_.bytes_used(), 0);
}

TEST_F(Prefixes, TailsGoFirstWhenMemoryIsWanted) {
  const std::vector<KvGroup> one = {groups_[0]};
  PagePool pool(allocator_, {10 * 64, kUnlimited});
  {
    PageTable old_table(pool, one), new_table(pool, one);
    fill(old_table, numbers(0, 64));
    fill(new_table, numbers(1000, 64));
    old_table.truncate(0);
  }
  PageTable big(pool, one);
  ASSERT_TRUE(big.reserve(5 * 16).ok()) << "two pages are free, three are reclaimed";
  EXPECT_EQ(pool.counts().pages_cached, 5);
  {
    PageTable table(pool, one);
    EXPECT_EQ(table.adopt(numbers(0, 64), 64), 16) << "the older one has lost its tail";
    EXPECT_EQ(table.adopt(numbers(1000, 64), 64), 64);
  }
  const Status status = big.reserve(11 * 16);
  EXPECT_EQ(status.code(), Code::oom_host);
  EXPECT_EQ(status.numbers().limit, 10);
  ASSERT_TRUE(big.reserve(10 * 16).ok()) << "all that nobody holds can be had";
  EXPECT_EQ(pool.counts().pages_cached, 0);
}

TEST_F(Prefixes, NoMoreIsCachedThanAllowed) {
  PagePool pool(allocator_, {0, 3 * 192});
  for (int i = 0; i < 50; ++i) {
    PageTable table(pool, groups_);
    fill(table, numbers(100 * i, 64));
    ASSERT_LE(pool.counts().bytes_cached, 3 * 192);
  }
  EXPECT_GT(pool.counts().bytes_cached, 0);
  PagePool none(allocator_, {0, 0});
  {
    PageTable table(none, groups_);
    fill(table, numbers(0, 64));
  }
  EXPECT_EQ(none.counts().bytes_cached, 0);
}

TEST_F(Prefixes, EqualPagesBecomeOne) {
  const std::vector<KvGroup> one = {groups_[0]};
  PagePool pool(allocator_, {0, kUnlimited});
  PageTable first(pool, one), second(pool, one);
  ASSERT_TRUE(first.reserve(32).ok());
  ASSERT_TRUE(second.reserve(32).ok());
  EXPECT_EQ(pool.counts().pages_held, 4);
  first.commit(32, numbers(0, 32));
  second.commit(32, numbers(0, 32));
  EXPECT_EQ(pool.counts().pages_held, 2);
  EXPECT_EQ(pool.counts().references, 4);
  EXPECT_TRUE(std::ranges::equal(first.pages(0), second.pages(0)));
}

TEST_F(Prefixes, ACutIntoAKnownPageMakesItUnknown) {
  const std::vector<KvGroup> one = {groups_[0]};
  PagePool pool(allocator_, {0, kUnlimited});
  PageTable table(pool, one);
  fill(table, numbers(0, 32));
  table.truncate(20);
  ASSERT_TRUE(table.reserve(1).ok());
  PageTable other(pool, one);
  EXPECT_EQ(other.adopt(numbers(0, 32), 32), 16) << "the second page is being written to";
  std::vector<int32_t> tokens = numbers(0, 20);
  for (int32_t i = 0; i < 12; ++i) tokens.push_back(-i);
  fill(table, tokens);
  EXPECT_EQ(other.adopt(tokens, 32), 32);
}

TEST(PrefixIndex, AHashProvesNothing) {
  PrefixIndex index;
  const std::vector<int32_t> a = numbers(0, 16), b = numbers(5, 16);
  const std::vector<BlockHash> hash = {42};
  ASSERT_NE(index.insert(0, a, hash), nullptr);
  EXPECT_EQ(index.insert(0, b, hash), nullptr);
  std::vector<int32_t> chain = b;
  chain.insert(chain.end(), a.begin(), a.end());
  const std::vector<BlockHash> hashes = {43, 42};
  EXPECT_EQ(index.insert(0, chain, hashes), nullptr) << "the same tokens after others";
  EXPECT_EQ(index.blocks(), 1u) << "nothing of the refused chain stays";
  // What follows a refused block is refused: it would be found behind the block that is there.
  const std::vector<BlockHash> behind = {42, 44};
  EXPECT_EQ(index.insert(0, chain, behind), nullptr);
  EXPECT_EQ(index.blocks(), 1u);
}

TEST(PrefixIndex, ABlockStaysKnownWhileLaterOnesHavePages) {
  PrefixIndex index;
  const std::vector<int32_t> tokens = numbers(0, 48);
  std::vector<BlockHash> hashes;
  for (size_t i = 0; i < 3; ++i)
    hashes.push_back(
        block_hash(i == 0 ? 9 : hashes.back(), std::span(tokens).subspan(16 * i).first<16>()));
  PrefixIndex::Block* last = index.insert(9, tokens, hashes);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(index.blocks(), 3u);
  last->pages = {{}, PageId{0, 1}};
  PrefixIndex::Block* first =
      index.insert(9, std::span(tokens).first(16), std::span(hashes).first(1));
  first->pages = {PageId{0, 2}};
  index.remove_page(hashes[0], 0);
  EXPECT_EQ(index.blocks(), 3u);
  index.remove_page(hashes[2], 1);
  EXPECT_EQ(index.blocks(), 0u);
}

}  // namespace
}  // namespace optima::kv
