// Marks in a map from page to what the tables say of it, then sweeps over the pool's pages.
#include "kv/audit.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace optima::kv {
namespace {

struct Mark {
  int64_t holds = 0;
  int64_t seen = 0;     // of them, by tables that can still see it
  int64_t cached = 0;   // times in the list of cached pages
  int64_t indexed = 0;  // times in the index for the block and group it is sealed for
};

uint64_t key_of(PageId page) {
  return static_cast<uint64_t>(static_cast<uint32_t>(page.size_class)) << 32 |
         static_cast<uint32_t>(page.index);
}

using Marks = std::unordered_map<uint64_t, Mark>;

Marks mark(const PoolView& pool, std::span<const TableView> tables, AuditReport& report) {
  Marks marks;
  for (const TableView& table : tables)
    for (const HeldPage& held : table.pages) {
      Mark& mark = marks[key_of(held.page)];
      ++mark.holds;
      mark.seen += held.reach == Reach::seen ? 1 : 0;
      ++report.references;
    }
  for (const PageId page : pool.cached) ++marks[key_of(page)].cached;
  return marks;
}

// Of one page that is not free.
void sweep(const PageView& page, const Mark& mark, AuditReport& report) {
  const bool sealed = page.group >= 0;
  if (page.references > 0) {
    ++(sealed ? report.pages_sealed : report.pages_open);
    report.leaked += mark.holds == 0 ? 1 : 0;
    report.mis_retained += mark.holds > 0 && mark.seen == 0 ? 1 : 0;
  } else {
    ++report.pages_cached;
    report.inconsistent += sealed ? 0 : 1;  // neither held nor known, and yet not free
  }
  report.miscounted += mark.holds != page.references ? 1 : 0;
  report.inconsistent += mark.cached != (page.references == 0 ? 1 : 0) ? 1 : 0;
  report.inconsistent += mark.indexed != (sealed ? 1 : 0) ? 1 : 0;
}

// What the pool's own sums say against what was found page by page.
int64_t wrong_sums(const PoolView& pool, const AuditReport& report) {
  int64_t bytes_held = 0, bytes_cached = 0, references = 0;
  for (const PageView& page : pool.pages) {
    (page.references > 0 ? bytes_held : bytes_cached) += page.bytes;
    references += page.references;
  }
  const auto pages = static_cast<int64_t>(pool.pages.size());
  const PoolCounts& counts = pool.counts;
  int64_t wrong = 0;
  const auto expect = [&wrong](int64_t sum, int64_t found) { wrong += sum != found ? 1 : 0; };
  expect(pool.pages_total, pool.pages_free + pages);
  expect(counts.pages_held, report.pages_open + report.pages_sealed);
  expect(counts.pages_sealed, report.pages_sealed + report.pages_cached);
  expect(counts.pages_cached, report.pages_cached);
  expect(counts.bytes_held, bytes_held);
  expect(counts.bytes_cached, bytes_cached);
  expect(counts.references, references);
  return wrong;
}

}  // namespace

AuditReport audit(const PoolView& pool, std::span<const TableView> tables) {
  AuditReport report;
  report.pages_total = pool.pages_total;
  report.pages_free = pool.pages_free;
  Marks marks = mark(pool, tables, report);
  std::unordered_map<uint64_t, const PageView*> pages;
  for (const PageView& page : pool.pages) pages.emplace(key_of(page.page), &page);
  for (const IndexedPage& indexed : pool.indexed) {
    const auto at = pages.find(key_of(indexed.page));
    if (at != pages.end() && at->second->group == indexed.group &&
        at->second->block == indexed.block) {
      ++marks[key_of(indexed.page)].indexed;
    } else {
      ++report.inconsistent;  // the index leads to a page that holds something else
    }
  }
  for (const PageView& page : pool.pages) {
    const auto at = marks.find(key_of(page.page));
    sweep(page, at == marks.end() ? Mark{} : at->second, report);
  }
  // A hold or an entry of the list of cached pages on a page that is free.
  for (const auto& [key, mark] : marks)
    if (!pages.contains(key)) {
      report.miscounted += mark.holds > 0 ? 1 : 0;
      report.inconsistent += mark.cached > 0 ? 1 : 0;
    }
  report.inconsistent += wrong_sums(pool, report);
  return report;
}

std::string AuditReport::text() const {
  return optima::text(pages_total, " pages: ", pages_free, " free, ", pages_open, " open, ",
                      pages_sealed, " sealed, ", pages_cached, " cached; ", references,
                      " references; ", leaked, " leaked, ", mis_retained, " retained for nothing, ",
                      miscounted, " miscounted, ", inconsistent, " inconsistent");
}

TableList::Entry::Entry(TableList& list, PageTable& table) : list_(&list), table_(&table) {
  const std::lock_guard lock(list.mutex_);
  list.tables_.push_back(&table);
}

TableList::Entry::~Entry() {
  const std::lock_guard lock(list_->mutex_);
  table_->truncate(0);
  std::erase(list_->tables_, table_);
}

}  // namespace optima::kv
