// Pages of KV memory. A page holds kPageTokens (16) tokens of one KV group, a group being a set of
// (layer, kv head) pairs given as data; groups of equal size share a size class. The pool is the
// only writer of reference counts, a PageRef the only way to hold a page.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"

namespace optima::kv {

inline constexpr int64_t kPageTokens = 16;

// One (layer, kv head) pair of a group.
struct KvHead {
  int32_t layer;
  int32_t head;
};

// What one group's pages hold and how long.
struct KvGroup {
  std::vector<KvHead> members;  // order = order of the slots in a page
  int64_t slot_bytes = 0;       // bytes of one member in a page (K and V of 16 tokens)
  int64_t window = 0;           // positions a query can look back, itself included; 0 = all
  int64_t page_bytes() const { return slot_bytes * static_cast<int64_t>(members.size()); }
};

class PagePool;

// Holds one page, alone or together with others (PagePool::share). Move-only: a copy that costs a
// lock is asked for by name.
class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept;
  PageRef& operator=(PageRef&& other) noexcept;
  ~PageRef();
  explicit operator bool() const { return pool_ != nullptr; }
  unsigned char* data() const { return data_; }
  void reset();

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  unsigned char* data_ = nullptr;
  int32_t size_class_ = 0;
  int32_t index_ = 0;
};

// Without a budget of its own the pool's budget is the allocator's limit (0 = none). Free = of the
// budget, not held, and no more than the allocator can still give; INT64_MAX when nothing limits.
// A page held several times counts once in bytes and pages.
struct PoolCounts {
  int64_t bytes_budget, bytes_held, bytes_free;
  int64_t pages_held;
  int64_t references;
};

// Thread-safe. Memory is taken from the allocator in slabs as pages are first needed, and given
// back when a slab is empty (one empty slab per page size stays). The budget counts pages held;
// page sizes are rounded up to 64 bytes.
class PagePool {
 public:
  PagePool(Allocator& allocator, int64_t budget_bytes);  // budget 0 = the allocator's limit alone
  ~PagePool();                                           // every PageRef must be gone

  // Zeroed only when its slab was new: readers must not look beyond the tokens written.
  // oom_host with pages wanted and free when the budget is used up.
  Result<PageRef> acquire(int64_t page_bytes);
  // All or nothing.
  Status acquire(int64_t page_bytes, int64_t count, std::vector<PageRef>& out);
  // Appends another hold of each page; empty references stay empty.
  void share(std::span<const PageRef> pages, std::vector<PageRef>& out);
  // Whether others hold the page too. What is shared may be read by all and written by nobody.
  bool is_shared(const PageRef& page) const;
  PoolCounts counts() const;

 private:
  friend class PageRef;
  struct State;
  class Acquisition;
  void release(PageRef& ref);
  std::unique_ptr<State> state_;
};

}  // namespace optima::kv
