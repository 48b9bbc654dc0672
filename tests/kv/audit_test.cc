// The audit finds what is wrong and nothing else: tables and pools in every state pass, and each
// kind of fault, put into the views by hand, is counted as what it is.
#include "kv/audit.h"

#include <gtest/gtest.h>

namespace optima::kv {
namespace {

class Audit : public testing::Test {
 protected:
  Audit() { fill(first_, 100); }

  void fill(PageTable& table, int32_t tokens) {
    std::vector<int32_t> ids(static_cast<size_t>(tokens), 3);
    const int64_t missing = tokens - table.length();
    ASSERT_TRUE(table.reserve(missing).ok());
    table.commit(missing, ids);
  }
  AuditReport run(const PoolView& pool) const { return audit(pool, {{first_.view()}}); }
  PageView& held(PoolView& view) {
    for (PageView& page : view.pages)
      if (page.references > 0 && page.group >= 0) return page;
    return view.pages.front();
  }

  Allocator allocator_{{}, 0};
  std::vector<KvGroup> groups_ = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 192, 20}};
  PagePool pool_{allocator_, {0, 1 << 20}};
  PageTable first_{pool_, groups_};
};

TEST_F(Audit, PassesWhatIsRight) {
  PageTable second = first_.fork();
  fill(second, 130);
  PageTable third(pool_, groups_);
  EXPECT_EQ(third.adopt(std::vector<int32_t>(100, 3), 100), 96);
  ASSERT_TRUE(third.reserve(40).ok());
  const AuditReport report =
      audit(pool_.view(), std::vector{first_.view(), second.view(), third.view(40)});
  EXPECT_EQ(report.faults(), 0) << report.text();
  EXPECT_EQ(report.references, pool_.counts().references);
  EXPECT_EQ(report.pages_cached, pool_.counts().pages_cached);
  EXPECT_GT(report.pages_cached, 0) << "of the window";
  EXPECT_GT(report.pages_open, 0);
  EXPECT_EQ(report.pages_free + report.pages_open + report.pages_sealed + report.pages_cached,
            report.pages_total);
}

TEST_F(Audit, NothingHeldAndAllTrimmedIsAllFree) {
  first_.truncate(0);
  pool_.trim();
  const AuditReport report = run(pool_.view());
  EXPECT_EQ(report.faults(), 0) << report.text();
  EXPECT_EQ(report.pages_free, report.pages_total);
}

TEST_F(Audit, WhatNoTableHoldsIsLeaked) {
  const Result<PageRef> lost = pool_.acquire(64);
  ASSERT_TRUE(lost.ok());
  const AuditReport report = run(pool_.view());
  EXPECT_EQ(report.leaked, 1);
  EXPECT_EQ(report.miscounted, 1);
  EXPECT_EQ(report.mis_retained + report.inconsistent, 0) << report.text();
}

// Reserved for tokens of a batch that is over, and behind a window.
TEST_F(Audit, WhatNoQueryWillSeeIsRetainedForNothing) {
  ASSERT_TRUE(first_.reserve(40).ok());
  EXPECT_EQ(audit(pool_.view(), std::vector{first_.view(40)}).faults(), 0)
      << "a batch is in flight";
  EXPECT_EQ(run(pool_.view()).mis_retained, 4) << "two pages of each group";
  first_.abort();
  EXPECT_EQ(run(pool_.view()).faults(), 0);
  TableView view = first_.view();
  view.pages.front().reach = Reach::unseen;
  EXPECT_EQ(audit(pool_.view(), std::vector{view}).mis_retained, 1);
  EXPECT_EQ(audit(pool_.view(), std::vector{view, first_.view()}).mis_retained, 0)
      << "another table sees it";
}

TEST_F(Audit, CountsThatAreNotTheTablesAreFound) {
  PoolView view = pool_.view();
  ++held(view).references;
  ++view.counts.references;
  EXPECT_EQ(run(view).miscounted, 1) << "a hold that is never given back";
  view = pool_.view();
  PageView& freed = held(view);
  freed.references = 0;
  const AuditReport report = run(view);
  EXPECT_EQ(report.miscounted, 1) << "let go of while a table holds it";
  EXPECT_GT(report.inconsistent, 0) << "and in no list";
}

TEST_F(Audit, StatesIndexAndSumsMustAgree) {
  PoolView view = pool_.view();
  view.indexed.pop_back();
  EXPECT_EQ(run(view).inconsistent, 1) << "known and not in the index";
  view = pool_.view();
  held(view).block += 1;
  EXPECT_EQ(run(view).inconsistent, 2) << "in the index for another block, and not for its own";
  view = pool_.view();
  ASSERT_FALSE(view.cached.empty());
  view.cached.pop_back();
  EXPECT_EQ(run(view).inconsistent, 1) << "a cached page that is never reclaimed";
  view = pool_.view();
  --view.pages_free;
  EXPECT_EQ(run(view).inconsistent, 1) << "a page is lost";
  view = pool_.view();
  view.counts.bytes_held += 64;
  EXPECT_EQ(run(view).inconsistent, 1);
}

TEST_F(Audit, AListKnowsTheTablesThatLive) {
  TableList list;
  PageTable table = first_.fork();
  {
    const TableList::Entry entry(list, table);
    EXPECT_EQ(list.tables(), std::vector<PageTable*>{&table});
  }
  EXPECT_TRUE(list.tables().empty());
  EXPECT_EQ(table.length(), 0) << "its pages went back";
  EXPECT_EQ(run(pool_.view()).faults(), 0);
}

}  // namespace
}  // namespace optima::kv
