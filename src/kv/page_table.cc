// Keeps, per KV group, which pages hold the positions of one sequence. Changes are transactions:
// reserve() gets pages for all groups or for none, abort() undoes it, commit() makes it count.
// Groups that see all positions keep every page; windowed groups let go of pages that lie wholly
// before the window of the next query as soon as they do, so that a group holds at most
// ceil(window / 16) + ceil(chunk / 16) + 1 pages at any time.
#include "kv/page_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/text.h"

namespace optima::kv {
namespace {

constexpr int64_t kLengthMax = std::numeric_limits<int64_t>::max() / 2;

int64_t pages_for(int64_t tokens) {
  return (tokens + kPageTokens - 1) / kPageTokens;
}

int64_t most_pages(const KvGroup& group, int64_t tokens, int64_t chunk) {
  const int64_t all = pages_for(tokens);
  return group.window == 0 ? all : std::min(all, pages_for(group.window) + pages_for(chunk) + 1);
}

}  // namespace

PageTable::PageTable(PagePool& pool, const std::vector<KvGroup>& groups, BlockHash root)
    : pool_(&pool), groups_(&groups), root_(root), group_pages_(groups.size()) {}

void PageTable::free_unseen() {
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    GroupPages& group = group_pages_[i];
    const auto held_end = static_cast<int64_t>(group.refs.size());
    const int64_t keep_from = std::min((*groups_)[i].first_page_seen(length_), held_end);
    for (int64_t page = group.first_kept; page < keep_from; ++page) {
      group.refs[page].reset();
      group.pointers[page] = nullptr;
    }
    group.first_kept = std::max(group.first_kept, keep_from);
  }
}

Status PageTable::reserve(int64_t tokens) {
  if (tokens < 0 || tokens > kLengthMax - length_)
    return Status(Code::invalid_argument, text("room for ", tokens, " tokens wanted after ",
                                               length_, ": must be 0 to ", kLengthMax - length_));
  const int64_t pages = pages_for(length_ + tokens);
  const auto wanted = [&](const GroupPages& group) {
    const int64_t missing = std::max<int64_t>(0, pages - static_cast<int64_t>(group.refs.size()));
    return missing + (tokens > 0 && must_copy(group) ? 1 : 0);
  };
  if (std::all_of(group_pages_.begin(), group_pages_.end(),
                  [&](const GroupPages& group) { return wanted(group) == 0; }))
    return {};
  // Held here until every group has its pages: an early return or a throw gives them back.
  std::vector<std::vector<PageRef>> acquired(group_pages_.size());
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    Status status =
        pool_->acquire((*groups_)[i].page_bytes(), wanted(group_pages_[i]), acquired[i]);
    if (!status.ok()) return std::move(status).in(text("KV group ", i, " of ", acquired.size()));
  }
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    GroupPages& group = group_pages_[i];
    const size_t size = group.refs.size() + acquired[i].size();
    // Doubling, as push_back would: one page at a time must stay cheap.
    if (size > group.refs.capacity()) group.refs.reserve(std::max(size, 2 * group.refs.size()));
    if (size > group.pointers.capacity())
      group.pointers.reserve(std::max(size, 2 * group.pointers.size()));
  }
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    GroupPages& group = group_pages_[i];
    if (tokens > 0 && must_copy(group)) {
      replace_open_page(group, (*groups_)[i].page_bytes(), std::move(acquired[i].back()));
      acquired[i].pop_back();
    }
    for (PageRef& ref : acquired[i]) {
      group.pointers.push_back(ref.data());
      group.refs.push_back(std::move(ref));
    }
  }
  return {};
}

// The page that holds position length(), when some of its positions are written already: the only
// one that others may hold and that will be written to.
bool PageTable::must_copy(const GroupPages& group) const {
  const auto open = static_cast<size_t>(length_ / kPageTokens);
  return length_ % kPageTokens != 0 && open < group.refs.size() && !pool_->own(group.refs[open]);
}

void PageTable::replace_open_page(GroupPages& group, int64_t page_bytes, PageRef copy) const {
  const auto open = static_cast<size_t>(length_ / kPageTokens);
  std::memcpy(copy.data(), group.refs[open].data(), static_cast<size_t>(page_bytes));
  group.pointers[open] = copy.data();
  group.refs[open] = std::move(copy);
}

PageTable PageTable::fork() const {
  PageTable out(*pool_, *groups_, root_);
  const auto pages = static_cast<size_t>(pages_for(length_));
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    const GroupPages& from = group_pages_[i];
    GroupPages& to = out.group_pages_[i];
    const size_t count = std::min(pages, from.refs.size());
    pool_->share(std::span(from.refs).first(count), to.refs);
    to.pointers.assign(from.pointers.begin(),
                       from.pointers.begin() + static_cast<std::ptrdiff_t>(count));
    to.first_kept = std::min(from.first_kept, static_cast<int64_t>(count));
  }
  out.sealed_ = sealed_;
  out.length_ = length_;
  return out;
}

void PageTable::seal(std::span<const int32_t> tokens) {
  const auto full = static_cast<size_t>(length_ / kPageTokens);
  std::vector<PageRef*> pages(group_pages_.size());
  for (size_t block = sealed_.size(); block < full; ++block) {
    const std::span<const int32_t, kPageTokens> own(
        tokens.subspan(block * kPageTokens, kPageTokens));
    sealed_.push_back(block_hash(block == 0 ? root_ : sealed_.back(), own));
    for (size_t i = 0; i < pages.size(); ++i) {
      PageRef& page = group_pages_[i].refs[block];
      pages[i] = page ? &page : nullptr;
    }
    pool_->seal({root_, tokens.first((block + 1) * kPageTokens), sealed_, pages});
    for (size_t i = 0; i < pages.size(); ++i)
      group_pages_[i].pointers[block] = group_pages_[i].refs[block].data();
  }
}

int64_t PageTable::adopt(std::span<const int32_t> tokens, int64_t limit) {
  const auto usable =
      static_cast<size_t>(std::clamp<int64_t>(limit, 0, static_cast<int64_t>(tokens.size())));
  if (static_cast<int64_t>(usable) / kPageTokens * kPageTokens <= length_) return length_;
  PrefixPages found = pool_->find(root_, tokens.first(usable), *groups_);
  if (found.blocks * kPageTokens <= length_) return length_;
  PageTable out(*pool_, *groups_, root_);
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    GroupPages& group = out.group_pages_[i];
    group.refs = std::move(found.groups[i]);
    for (const PageRef& ref : group.refs) group.pointers.push_back(ref.data());
    while (group.first_kept < found.blocks && !group.refs[static_cast<size_t>(group.first_kept)])
      ++group.first_kept;
  }
  for (int64_t block = 0; block < found.blocks; ++block)
    out.sealed_.push_back(block_hash(block == 0 ? root_ : out.sealed_.back(),
                                     std::span<const int32_t, kPageTokens>(tokens.subspan(
                                         static_cast<size_t>(block * kPageTokens), kPageTokens))));
  out.length_ = found.blocks * kPageTokens;
  truncate(0);
  *this = std::move(out);
  return length_;
}

Status PageTable::make_length(int64_t length) {
  std::vector<std::vector<PageRef>> acquired(group_pages_.size());
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    const KvGroup& group = (*groups_)[i];
    acquired[i].resize(static_cast<size_t>(group.first_page_seen(length)));
    Status status = pool_->acquire(group.page_bytes(),
                                   pages_for(length) - group.first_page_seen(length), acquired[i]);
    if (!status.ok()) return std::move(status).in(text("KV group ", i, " of ", acquired.size()));
  }
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    GroupPages& group = group_pages_[i];
    group.refs = std::move(acquired[i]);
    group.first_kept = (*groups_)[i].first_page_seen(length);
    for (const PageRef& ref : group.refs) group.pointers.push_back(ref.data());
  }
  length_ = length;
  return {};
}

std::span<unsigned char* const> PageTable::pages_seen(size_t group) const {
  const int64_t end = pages_for(length_);
  const int64_t begin = std::min(end, (*groups_)[group].first_page_seen(length_));
  return std::span(group_pages_[group].pointers)
      .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

void PageTable::commit(int64_t count, std::span<const int32_t> tokens) {
  length_ += count;
  if (!tokens.empty()) seal(tokens);
  free_unseen();
}

void PageTable::abort(int64_t kept) {
  release_from(static_cast<size_t>(pages_for(length_ + kept)));
}

void PageTable::truncate(int64_t length) {
  length_ = length;
  release_from(static_cast<size_t>(pages_for(length)));
  if (sealed_.size() > static_cast<size_t>(length / kPageTokens))
    sealed_.resize(static_cast<size_t>(length / kPageTokens));
}

// From the end on and block by block: what is cached is reclaimed in this order, and a block is of
// use only while those before it are there.
void PageTable::release_from(size_t page) {
  size_t end = 0;
  for (const GroupPages& group : group_pages_) end = std::max(end, group.refs.size());
  for (size_t last = end; last-- > page;)
    for (GroupPages& group : group_pages_)
      if (last < group.refs.size()) group.refs.pop_back();
  for (GroupPages& group : group_pages_) {
    group.pointers.resize(std::min(page, group.pointers.size()));
    group.first_kept = std::min(group.first_kept, static_cast<int64_t>(group.refs.size()));
  }
}

// For a group with first_kept > 0, the lengths that work are 0 and all from some length on, since
// what a query sees only moves up. The one exception is a window of a single position, which needs
// nothing of the past: there every page border works as well.
int64_t PageTable::reusable(int64_t length) const {
  const auto works = [this](int64_t candidate) {
    for (size_t i = 0; i < group_pages_.size(); ++i) {
      const int64_t first = (*groups_)[i].first_page_seen(candidate);
      if (first < group_pages_[i].first_kept && first < pages_for(candidate)) return false;
    }
    return true;
  };
  const int64_t longest = std::clamp<int64_t>(length, 0, length_);
  if (works(longest)) return longest;
  const int64_t border = longest - longest % kPageTokens;
  return works(border) ? border : 0;
}

int64_t PageTable::bytes_held() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    const GroupPages& group = group_pages_[i];
    const int64_t pages = static_cast<int64_t>(group.refs.size()) - group.first_kept;
    bytes += pages * (*groups_)[i].page_bytes();
  }
  return bytes;
}

int64_t PageTable::pages_needed(int64_t tokens, int64_t chunk) const {
  int64_t pages = 0;
  for (const KvGroup& group : *groups_) pages += most_pages(group, tokens, chunk);
  return pages;
}

int64_t PageTable::bytes_needed(int64_t tokens, int64_t chunk) const {
  int64_t bytes = 0;
  for (const KvGroup& group : *groups_)
    bytes += most_pages(group, tokens, chunk) * group.page_bytes();
  return bytes;
}

TableUse PageTable::use() const {
  TableUse out;
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    const GroupPages& group = group_pages_[i];
    const int64_t bytes = (*groups_)[i].page_bytes();
    const int64_t pages = static_cast<int64_t>(group.refs.size()) - group.first_kept;
    const int64_t shared = pool_->count_shared(group.refs);
    out.pages += pages;
    out.bytes += pages * bytes;
    out.shared_pages += shared;
    out.shared_bytes += shared * bytes;
  }
  return out;
}

TableView PageTable::view(int64_t in_flight) const {
  TableView out;
  const int64_t end = pages_for(length_ + in_flight);
  for (size_t i = 0; i < group_pages_.size(); ++i) {
    const std::vector<PageRef>& refs = group_pages_[i].refs;
    const int64_t begin = (*groups_)[i].first_page_seen(length_);
    for (size_t page = 0; page < refs.size(); ++page) {
      const auto number = static_cast<int64_t>(page);
      const bool seen = number >= begin && number < end;
      if (refs[page]) out.pages.push_back({refs[page].id(), seen ? Reach::seen : Reach::unseen});
    }
  }
  return out;
}

std::span<unsigned char* const> PageTable::pages(size_t group) const {
  return group_pages_[group].pointers;
}

}  // namespace optima::kv
