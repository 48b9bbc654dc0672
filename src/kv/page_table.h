// The pages of one sequence: for each KV group the list of pages from position 0 on, with holes
// (null) where a windowed group has let go of what no later query can see.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "kv/page_pool.h"

namespace optima::kv {

// Pages that one table holds; shared: others hold them too.
struct TableUse {
  int64_t pages = 0, bytes = 0;
  int64_t shared_pages = 0, shared_bytes = 0;
};

class PageTable {
 public:
  // `groups` and `pool` must outlive the table. Tables share pages with those of the same root.
  PageTable(PagePool& pool, const std::vector<KvGroup>& groups, BlockHash root = 0);
  PageTable(PageTable&&) = default;
  PageTable& operator=(PageTable&&) = default;
  ~PageTable() { truncate(0); }

  // The same tokens in a table of their own: pages are shared and copied when one of the tables
  // first writes to them. What was reserved beyond length() is not taken over.
  PageTable fork() const;

  // Makes room for positions [length(), length() + tokens): pages are acquired, also one in place
  // of a shared page that is going to be written. All groups or none: on failure nothing has been
  // acquired (oom_host: pages wanted and free).
  Status reserve(int64_t tokens);
  // `count` tokens are written: length() grows, and windowed groups free what no later query can
  // see. They must have been reserved. With the `tokens` of the sequence (at least length() of
  // them) others can find the full pages by what they hold, and pages that are known already take
  // the place of the table's own.
  void commit(int64_t count, std::span<const int32_t> tokens = {});
  // Takes over what others have computed of the first `limit` of `tokens`, when that is more than
  // length(). Only without reserved pages. Returns length().
  int64_t adopt(std::span<const int32_t> tokens, int64_t limit);
  // Of an empty table: pages for all that a query at `length` can see, to be filled by the caller.
  // oom_host as reserve().
  Status make_length(int64_t length);
  // Gives back pages reserved beyond length() and `kept` tokens after it.
  void abort(int64_t kept = 0);
  // Keeps the first `length` tokens. Only lengths for which reusable(length) holds.
  void truncate(int64_t length);
  // The longest l <= length such that every position a query at l can see is still held
  // (windowed groups may have freed it): 0 when recomputing from the start is the only way.
  int64_t reusable(int64_t length) const;

  const std::vector<KvGroup>& groups() const { return *groups_; }
  BlockHash root() const { return root_; }
  int64_t length() const { return length_; }
  // Those of a group's pages that a query at length() can see.
  std::span<unsigned char* const> pages_seen(size_t group) const;
  int64_t bytes_held() const;  // of shared pages too
  // Most pages, and their bytes, that `tokens` tokens need at a time when at most `chunk` of them
  // are computed at once: of windowed groups those that a query can see.
  int64_t pages_needed(int64_t tokens, int64_t chunk) const;
  int64_t bytes_needed(int64_t tokens, int64_t chunk) const;
  TableUse use() const;
  // Its pages, for an audit, while the KV of `in_flight` tokens after length() is being computed.
  TableView view(int64_t in_flight = 0) const;
  // Page pointers of a group, from page 0; null where freed. Valid until the next change.
  std::span<unsigned char* const> pages(size_t group) const;

 private:
  struct GroupPages {
    std::vector<PageRef> refs;
    std::vector<unsigned char*> pointers;
    int64_t first_kept = 0;  // pages before this one are freed
  };
  void seal(std::span<const int32_t> tokens);
  void free_unseen();
  bool must_copy(const GroupPages& group) const;
  void release_from(size_t page);
  void replace_open_page(GroupPages& group, int64_t page_bytes, PageRef copy) const;

  PagePool* pool_;
  const std::vector<KvGroup>* groups_;
  BlockHash root_;
  std::vector<GroupPages> group_pages_;
  std::vector<BlockHash> sealed_;  // the hashes of the blocks that seal() has seen
  int64_t length_ = 0;
};

}  // namespace optima::kv
