// Mark and sweep over the pages of a pool: what the tables hold is compared with what the pool
// counts. A pure function over plain views; who collects them sees to it that no table changes
// meanwhile (TableList).
//
// A page that nobody holds and that is known by its tokens is cached: it is given up when memory is
// wanted, and no fault. What is held and marked by no table is leaked; what is held although no
// query to come can see it is retained for nothing (both should be 0 at any time).
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kv/page_table.h"
#include "kv/pool_view.h"

namespace optima::kv {

struct AuditReport {
  int64_t pages_total = 0;  // in the slabs; the sum of the next four
  int64_t pages_free = 0;
  int64_t pages_open = 0;    // held, one table writes to it
  int64_t pages_sealed = 0;  // held and known by their tokens
  int64_t pages_cached = 0;  // known by their tokens, not held
  int64_t references = 0;    // of the tables
  int64_t leaked = 0;        // held, but by no table
  int64_t mis_retained = 0;  // held, but no query to come can see it
  int64_t miscounted = 0;    // pages with another count than tables hold it
  int64_t inconsistent = 0;  // disagreements of states, index and sums
  int64_t faults() const { return leaked + mis_retained + miscounted + inconsistent; }
  std::string text() const;  // all of it in one line
};

AuditReport audit(const PoolView& pool, std::span<const TableView> tables);

// The tables whose pages an audit marks: those of sessions and of work in progress (a snapshot that
// is being written or read). Each is entered where it is made and leaves with its pages.
//
// Lock order: whatever guards the tables' owners, then this list, then the pool.
class TableList {
 public:
  // While it lives the table is in the list; its end gives the table's pages back.
  class Entry {
   public:
    Entry(TableList& list, PageTable& table);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    TableList* list_;
    PageTable* table_;
  };

  // Held while a table of the list changes that has no other lock, and during an audit.
  std::mutex& mutex() { return mutex_; }
  // Under mutex() and the lock of the tables' owners.
  const std::vector<PageTable*>& tables() const { return tables_; }

 private:
  std::mutex mutex_;
  std::vector<PageTable*> tables_;
};

}  // namespace optima::kv
