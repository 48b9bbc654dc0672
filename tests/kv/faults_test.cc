// One test for each fault of paged caches that kv-and-quantisation.md 6.3 documents, as far as
// pools and tables can have it; those of whole engines are in tests/engine/kv_test.cc, that
// of kernels in tests/kernels/attention_window_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "kv/audit.h"

namespace optima::kv {
namespace {

constexpr int64_t kAll = int64_t{1} << 40;

int64_t ceil_pages(int64_t tokens) {
  return (tokens + kPageTokens - 1) / kPageTokens;
}

std::vector<int32_t> tokens_of(int64_t count, int32_t salt = 0) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = salt + static_cast<int32_t>(i);
  return out;
}

void grow(PageTable& table, int64_t tokens, int32_t salt = 0) {
  const int64_t missing = tokens - table.length();
  ASSERT_TRUE(table.reserve(missing).ok());
  table.commit(missing, tokens_of(tokens, salt));
}

// Row "Hybrid layers allocated alike": five layers of six look back 64 positions. Allocated alike a
// sequence of 4,096 would hold 6 * 256 layer pages; by window it holds those of one layer and a
// few.
TEST(DocumentedFaults, HybridLayersAreNotAllocatedAlike) {
  const std::vector<KvGroup> groups = {{{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}, 64, 64},
                                       {{{5, 0}}, 64, 0}};
  Allocator allocator({}, 0);
  PagePool pool(allocator, {0, 0});
  PageTable table(pool, groups);
  for (int64_t length = 64; length <= 4096; length += 64) grow(table, length);
  const int64_t windowed = pool.counts().bytes_held - 256 * 64;
  EXPECT_EQ(windowed, 4 * 5 * 64) << "of the window's 63 positions and none else";
  EXPECT_LT(pool.counts().bytes_held * 5, 6 * 256 * 64) << "a fifth of what all alike would take";
  EXPECT_EQ(audit(pool.view(), std::vector{table.view()}).mis_retained, 0);
}

// Row "SWA: allocate, then free one step later; whole prompt allocated at once": in a pool that has
// ceil(W/16) + ceil(chunk/16) + 1 pages and no more, a windowed sequence of any length runs.
TEST(DocumentedFaults, AWindowedSequenceNeverHoldsMoreThanItsBound) {
  for (const int64_t window : {1, 16, 40, 64, 100})
    for (const int64_t chunk : {1, 7, 16, 64, 100}) {
      const std::vector<KvGroup> groups = {{{{0, 0}}, 64, window}};
      const int64_t bound = ceil_pages(window) + ceil_pages(chunk) + 1;
      Allocator allocator({}, 0);
      PagePool pool(allocator, {bound * 64, kAll});
      PageTable table(pool, groups);
      int64_t peak = 0;
      const auto tokens = tokens_of(2000);
      while (table.length() + chunk <= 2000) {
        ASSERT_TRUE(table.reserve(chunk).ok())
            << "window " << window << " chunk " << chunk << " at " << table.length();
        peak = std::max(peak, pool.counts().pages_held);
        table.commit(chunk, tokens);
        ASSERT_EQ(audit(pool.view(), std::vector{table.view()}).faults(), 0);
      }
      EXPECT_LE(peak, bound);
    }
}

// Row "Refcount order / zeroing": caching a page is no hold of its own (never given back), and no
// holder's end takes the page from another (count forced to 0).
TEST(DocumentedFaults, CachingHoldsNothingAndNobodysEndIsAnothers) {
  const std::vector<KvGroup> groups = {{{{0, 0}}, 64, 0}};
  std::vector<int> order = {0, 1, 2};
  do {
    Allocator allocator({}, 0);
    PagePool pool(allocator, {0, kAll});
    std::vector<PageTable> tables;
    tables.emplace_back(pool, groups);
    grow(tables[0], 40);
    std::fill_n(tables[0].pages(0)[0], 64, static_cast<unsigned char>(7));
    tables.push_back(tables[0].fork());
    tables.emplace_back(pool, groups);
    ASSERT_EQ(tables[2].adopt(tokens_of(40), 40), 32);
    EXPECT_EQ(pool.counts().references, 3 + 3 + 2);
    const auto views = [&] {
      return std::vector{tables[0].view(), tables[1].view(), tables[2].view()};
    };
    for (const int gone : order) {
      tables[static_cast<size_t>(gone)].truncate(0);
      const AuditReport report = audit(pool.view(), views());
      ASSERT_EQ(report.faults(), 0) << report.text();
      for (const PageTable& table : tables)
        if (table.length() > 0) {
          EXPECT_EQ(table.pages(0)[0][63], 7) << "still there for who holds it";
        }
    }
    EXPECT_EQ(pool.counts().pages_held, 0);
    EXPECT_EQ(pool.counts().references, 0);
    EXPECT_EQ(pool.counts().pages_cached, 2);
    // All of it can be had again: cached pages are not 135 % of anything.
    PagePool small(allocator, {3 * 64, kAll});
    for (int32_t i = 0; i < 10; ++i) {
      PageTable table(small, groups);
      grow(table, 48, 100 * i);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Row "Abort / remote holders never released": what was reserved, found or copied for work that
// does not come to pass goes back, and what a writer of a snapshot holds goes with the writer.
TEST(DocumentedFaults, WorkThatDoesNotComeToPassHoldsNothing) {
  const std::vector<KvGroup> groups = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 64, 40}};
  Allocator allocator({}, 0);
  PagePool pool(allocator, {0, kAll});
  TableList list;
  PageTable table(pool, groups);
  grow(table, 100);
  const int64_t held = pool.counts().pages_held;
  ASSERT_TRUE(table.reserve(200).ok());
  table.abort();
  EXPECT_EQ(pool.counts().pages_held, held);
  {
    PageTable waiting(pool, groups);  // has found its prefix and is cancelled before it begins
    EXPECT_EQ(waiting.adopt(tokens_of(100), 99), 96);
  }
  EXPECT_EQ(pool.counts().references, held);
  {
    PageTable written = table.fork();  // by a writer that outlives the session
    const TableList::Entry entry(list, written);
    table.truncate(0);
    EXPECT_EQ(pool.counts().pages_held, held);
  }
  EXPECT_EQ(pool.counts().pages_held, 0);
  EXPECT_EQ(audit(pool.view(), {}).faults(), 0);
}

// Row "Bookkeeping list leak": after any number of sequences the books are as small as before.
TEST(DocumentedFaults, TheBooksEndEmpty) {
  const std::vector<KvGroup> groups = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 64, 24}};
  Allocator allocator({}, 0);
  PagePool pool(allocator, {0, 64 * 64, 8});  // nobody reads the events
  for (int32_t i = 0; i < 3000; ++i) {
    PageTable table(pool, groups, pool.new_root());
    grow(table, 50, 1000 * i);
    if (i % 100 == 0) {
      ASSERT_LE(pool.view().indexed.size(), 64u + 8u);
    }
  }
  pool.trim();
  const PoolView view = pool.view();
  EXPECT_TRUE(view.indexed.empty() && view.cached.empty() && view.pages.empty());
  EXPECT_EQ(view.pages_total, 0);
  EXPECT_EQ(allocator.bytes_used(), 0);
  EXPECT_EQ(view.known_blocks + view.known_roots, 0u);
}

// Row "Duplicate cached blocks not merged": two that compute the same at the same time keep it
// once, whoever ends first, and so does a third.
TEST(DocumentedFaults, DuplicatesBecomeOne) {
  const std::vector<KvGroup> groups = {{{{0, 0}}, 64, 0}};
  Allocator allocator({}, 0);
  PagePool pool(allocator, {0, kAll});
  PageTable first(pool, groups), second(pool, groups), third(pool, groups);
  for (PageTable* table : {&first, &second, &third}) ASSERT_TRUE(table->reserve(64).ok());
  EXPECT_EQ(pool.counts().pages_held, 12);
  for (PageTable* table : {&first, &second, &third}) table->commit(64, tokens_of(64));
  EXPECT_EQ(pool.counts().pages_held, 4);
  EXPECT_EQ(pool.counts().references, 12);
  EXPECT_TRUE(std::ranges::equal(first.pages(0), third.pages(0)));
  first.truncate(0);
  EXPECT_EQ(pool.counts().pages_held, 4);
  second.truncate(0);
  third.truncate(0);
  EXPECT_EQ(pool.counts().pages_cached, 4);
}

}  // namespace
}  // namespace optima::kv
