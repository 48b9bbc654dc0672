// Pages of KV memory. A page holds kPageTokens (16) tokens of one KV group, a group being a set of
// (layer, kv head) pairs given as data; groups of equal size share a size class. The pool is the
// only writer of reference counts, a PageRef the only way to hold a page.
//
//            acquire            seal                    last hold goes
//   free ------------> open ------------> sealed <---------------------> cached
//    ^                  |  <------------    |            find               |
//    |  last hold goes  |       own         |                               |
//    +------------------+-------------------+-------------------------------+
//                                              memory is wanted for others
//
// An open page belongs to one table, which writes to it. A sealed one is full and known by its
// tokens; who finds it may hold it too. A cached one is held by nobody and taken when needed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "kv/event_log.h"
#include "kv/pool_view.h"
#include "kv/prefix_index.h"

namespace optima::kv {

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
  // The first page that a query at `position` can see something of.
  int64_t first_page_seen(int64_t position) const {
    const int64_t first = position - window + 1;
    return window == 0 || first < 0 ? 0 : first / kPageTokens;
  }
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
  PageId id() const { return id_; }
  void reset();

 private:
  friend class PagePool;
  PagePool* pool_ = nullptr;
  unsigned char* data_ = nullptr;
  PageId id_;
};

struct PoolLimits {
  int64_t budget_bytes = 0;  // of pages held and cached; 0 = the allocator's limit alone
  int64_t cached_bytes = 0;  // kept for later when nobody holds them
  int64_t events = 0;        // of take_events() that are kept for a slow reader; 0 = none are made
};

// Why find() found nothing of some tokens.
enum class Miss : int32_t {
  unknown = 0,    // nobody has computed their first block from this root, or too long ago to tell
  elsewhere = 1,  // the first block is known from another root
  reclaimed = 2,  // it was known: its memory was wanted for other tokens
  not_kept = 3,   // it was known: nothing is kept that nobody holds
  window = 4,  // it is known, but of a windowed group the pages that a query would look at are not
};

// A block of tokens whose pages are sealed: the last of `prefix`.
struct SealedBlock {
  BlockHash root;
  std::span<const int32_t> prefix;    // whole blocks
  std::span<const BlockHash> hashes;  // of these blocks
  std::span<PageRef* const> pages;    // by group; null where the table holds none
};

// The pages of the first `blocks` blocks of a sequence, by group; empty where its window does not
// look.
struct PrefixPages {
  int64_t blocks = 0;
  std::vector<std::vector<PageRef>> groups;
};

// Thread-safe. Memory is taken from the allocator in slabs as pages are first needed, and given
// back when a slab is empty (one empty slab per page size stays). The budget counts pages held;
// page sizes are rounded up to 64 bytes.
class PagePool {
 public:
  PagePool(Allocator& allocator, const PoolLimits& limits);
  ~PagePool();  // every PageRef must be gone

  // Zeroed only when its slab was new: readers must not look beyond the tokens written.
  // oom_host with pages wanted and free when the budget is used up.
  Result<PageRef> acquire(int64_t page_bytes);
  // All or nothing.
  Status acquire(int64_t page_bytes, int64_t count, std::vector<PageRef>& out);
  // Appends another hold of each page; empty references stay empty.
  void share(std::span<const PageRef> pages, std::vector<PageRef>& out);
  // Whether the page is held here alone and may be written to; if so it is open from now on.
  bool own(const PageRef& page);
  // How many of them others hold as well.
  int64_t count_shared(std::span<const PageRef> pages) const;
  // Makes full pages known by their tokens. Where such a page is known already, that one takes the
  // place of the table's own. Without memory for it nothing happens.
  void seal(const SealedBlock& block);
  // A root that no table of this pool has yet.
  BlockHash new_root();
  // Holds what is known of `tokens`: of as many whole blocks as possible.
  PrefixPages find(BlockHash root, std::span<const int32_t> tokens,
                   std::span<const KvGroup> groups);
  // Why find() has just found nothing; `tokens` are one block at least.
  Miss why_missed(BlockHash root, std::span<const int32_t> tokens,
                  std::span<const KvGroup> groups) const;
  // What has become known and unknown since the last call, as far as `out` reaches.
  KvEventsTaken take_events(std::span<KvEvent> out);
  // Forgets pages that nobody holds, and gives back all memory that is in no use.
  void trim();
  PoolCounts counts() const;
  // Every page, for an audit.
  PoolView view() const;

 private:
  friend class PageRef;
  struct State;
  class Acquisition;
  void release(PageRef& ref);
  PageRef hold(PageId id);
  std::unique_ptr<State> state_;
};

}  // namespace optima::kv
