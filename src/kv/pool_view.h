// What a pool and a table hold, as plain data for an audit.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/prefix_index.h"

namespace optima::kv {

// Without a budget of its own the pool's budget is the allocator's limit (0 = none). Free = of the
// budget, not held, and no more than the allocator can still give; INT64_MAX when nothing limits.
// A page held several times counts once in bytes and pages.
struct PoolCounts {
  int64_t bytes_budget, bytes_held, bytes_free, bytes_cached;
  int64_t pages_held, pages_sealed, pages_cached;  // held: sealed ones among them
  int64_t references;
};

// A page that is not free.
struct PageView {
  PageId page;
  int32_t references = 0;
  int32_t group = -1;  // sealed: the group and block it is known for; -1 = open
  BlockHash block = 0;
  int64_t bytes = 0;
};

// A page that the index has for a block and group.
struct IndexedPage {
  PageId page;
  int32_t group = 0;
  BlockHash block = 0;
};

struct PoolView {
  int64_t pages_total = 0, pages_free = 0;
  std::vector<PageView> pages;  // those that are not free
  std::vector<PageId> cached;   // the list of cached pages, oldest first
  std::vector<IndexedPage> indexed;
  size_t known_blocks = 0, known_roots = 0;  // of the index
  PoolCounts counts{};
};

enum class Reach : uint8_t {
  seen = 0,  // a query to come can see it, or one that is being computed
  unseen = 1,
};

struct HeldPage {
  PageId page;
  Reach reach = Reach::seen;
};

struct TableView {
  std::vector<HeldPage> pages;
};

}  // namespace optima::kv
