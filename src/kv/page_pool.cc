// Counts who holds which page, keeps sealed pages that nobody holds for as long as their memory is
// not wanted, and finds pages by their tokens. The memory itself is in page_slabs.cc, the tokens in
// prefix_index.cc.
//
// The budget counts pages held and cached, so that what is left is exact whatever the mix of sizes.
// Memory in slabs beyond that (at most one empty slab per class, and the free pages of partly used
// slabs) is counted by the allocator and is what its limit bounds.
#include "kv/page_pool.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "base/text.h"
#include "kv/page_slabs.h"

namespace optima::kv {
namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kPageBytesMax = int64_t{1} << 40;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

struct PagePool::State {
  State(Allocator& of, const PoolLimits& with)
      : allocator(&of), limits(with), slabs(of), events(with.events) {}

  Allocator* allocator;
  PoolLimits limits;
  mutable std::mutex mutex;
  PageSlabs slabs;
  PrefixIndex index;
  PageId oldest, newest;  // cached pages, in the order in which they were let go
  PoolCounts counts{};
  int32_t roots = 0;
  EventLog events;
  // First blocks that were forgotten last, to tell why a prompt has found nothing.
  std::array<BlockHash, 1024> forgotten{};
  size_t forgotten_count = 0;

  int64_t bytes(PageId page) const { return slabs.stride(page.size_class); }
  int64_t pages_affordable(int64_t stride) const;
  PoolCounts now() const;
  bool over_cached() const { return counts.bytes_cached > limits.cached_bytes; }
  Result<PageId> take(int32_t size_class, int64_t wanted);
  void hold(PageId page);
  Buffer drop(PageId page);
  void forget(PageId page);
  void link_newest(PageId page);
  void unlink(PageId page);
  Buffer reclaim_oldest();
  void seal(PageId page, PrefixIndex::Block& block, BlockHash hash, size_t group);
};

// What is cached can be had.
int64_t PagePool::State::pages_affordable(int64_t stride) const {
  if (limits.budget_bytes == 0) return kUnlimited;
  return std::max<int64_t>(0, limits.budget_bytes - counts.bytes_held) / stride;
}

// The caller has checked the budget. `wanted`: this page and those the caller takes after it.
Result<PageId> PagePool::State::take(int32_t size_class, int64_t wanted) {
  const int64_t stride = slabs.stride(size_class);
  const auto too_much = [&] {
    return limits.budget_bytes > 0 &&
           counts.bytes_held + counts.bytes_cached + stride > limits.budget_bytes;
  };
  while (too_much() && oldest) reclaim_oldest();
  Result<PageId> page = slabs.take(size_class, wanted, pages_affordable(stride));
  while (!page.ok() && oldest) {
    reclaim_oldest();
    page = slabs.take(size_class, wanted, pages_affordable(stride));
  }
  if (page.ok()) hold(*page);
  return page;
}

void PagePool::State::hold(PageId page) {
  PageNote& note = slabs.note(page);
  ++counts.references;
  if (++note.references > 1) return;
  if (note.group >= 0) unlink(page);
  counts.bytes_held += bytes(page);
  ++counts.pages_held;
}

// One hold less. After the last one an open page is free and a sealed one cached.
Buffer PagePool::State::drop(PageId page) {
  PageNote& note = slabs.note(page);
  --counts.references;
  if (--note.references > 0) return {};
  counts.bytes_held -= bytes(page);
  --counts.pages_held;
  if (note.group < 0) return slabs.give(page);
  link_newest(page);
  return over_cached() ? reclaim_oldest() : Buffer();
}

// A sealed page is no longer known by its tokens.
void PagePool::State::forget(PageId page) {
  PageNote& note = slabs.note(page);
  if (index.at(note.block).first) forgotten[forgotten_count++ % forgotten.size()] = note.block;
  events.add({KvEventType::removed, note.group, note.block, 0, {}});
  index.remove_page(note.block, static_cast<size_t>(note.group));
  note.group = -1;
  --counts.pages_sealed;
}

void PagePool::State::link_newest(PageId page) {
  PageNote& note = slabs.note(page);
  note.older = newest;
  note.newer = {};
  (newest ? slabs.note(newest).newer : oldest) = page;
  newest = page;
  counts.bytes_cached += bytes(page);
  ++counts.pages_cached;
}

void PagePool::State::unlink(PageId page) {
  PageNote& note = slabs.note(page);
  (note.older ? slabs.note(note.older).newer : oldest) = note.newer;
  (note.newer ? slabs.note(note.newer).older : newest) = note.older;
  note.older = note.newer = {};
  counts.bytes_cached -= bytes(page);
  --counts.pages_cached;
}

Buffer PagePool::State::reclaim_oldest() {
  const PageId page = oldest;
  unlink(page);
  forget(page);
  return slabs.give(page);
}

void PagePool::State::seal(PageId page, PrefixIndex::Block& block, BlockHash hash, size_t group) {
  if (block.pages.size() <= group) block.pages.resize(group + 1);
  block.pages[group] = page;
  PageNote& note = slabs.note(page);
  note.block = hash;
  note.group = static_cast<int32_t>(group);
  ++counts.pages_sealed;
  events.add({KvEventType::stored, note.group, hash, block.parent, block.tokens});
}

// The pages of one acquire(), under the pool's lock: unless all were got, those that were go back,
// also when the C++ allocator throws.
class PagePool::Acquisition {
 public:
  Acquisition(PagePool& pool, std::vector<PageRef>& out)
      : pool_(pool), state_(*pool.state_), out_(out), before_(out.size()) {}
  ~Acquisition() {
    if (complete_) return;
    for (size_t i = before_; i < out_.size(); ++i) {
      if (!out_[i]) continue;
      state_.drop(out_[i].id_);
      out_[i].pool_ = nullptr;
    }
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(before_), out_.end());
  }

  Status run(int64_t stride, int64_t count) {
    const int64_t affordable = state_.pages_affordable(stride);
    if (count > affordable)
      return refuse(stride, {count, affordable},
                    text("the KV budget is ", state_.limits.budget_bytes, " bytes, of which ",
                         state_.counts.bytes_held, " are held"));
    const int32_t size_class = state_.slabs.class_of(stride);
    out_.reserve(before_ + static_cast<size_t>(std::min(count, kReserveMax)));
    for (int64_t taken = 0; taken < count; ++taken) {
      out_.emplace_back();
      Result<PageId> page = state_.take(size_class, count - taken);
      if (!page.ok()) {
        out_.pop_back();
        return refuse(stride, {count, taken}, page.status().message());
      }
      PageRef& ref = out_.back();
      ref.pool_ = &pool_;
      ref.data_ = state_.slabs.data(*page);
      ref.id_ = *page;
    }
    complete_ = true;
    return {};
  }

 private:
  static constexpr int64_t kReserveMax = 1 << 16;

  Status refuse(int64_t stride, ErrorNumbers numbers, const std::string& why) const {
    if (state_.limits.budget_bytes > 0) numbers.limit = state_.limits.budget_bytes / stride;
    return Status(Code::oom_host,
                  text(numbers.wanted, " KV pages of ", stride, " bytes wanted, ",
                       numbers.available, " free: ", why),
                  numbers);
  }

  PagePool& pool_;
  State& state_;
  std::vector<PageRef>& out_;
  size_t before_;
  bool complete_ = false;
};

PageRef::PageRef(PageRef&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      id_(other.id_) {}

PageRef& PageRef::operator=(PageRef&& other) noexcept {
  if (this == &other) return *this;
  reset();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  id_ = other.id_;
  return *this;
}

PageRef::~PageRef() {
  reset();
}

void PageRef::reset() {
  if (pool_ != nullptr) pool_->release(*this);
}

PagePool::PagePool(Allocator& allocator, const PoolLimits& limits)
    : state_(std::make_unique<State>(allocator, limits)) {}

PagePool::~PagePool() = default;

Result<PageRef> PagePool::acquire(int64_t page_bytes) {
  std::vector<PageRef> pages;
  OPTIMA_TRY(acquire(page_bytes, 1, pages));
  return std::move(pages.front());
}

Status PagePool::acquire(int64_t page_bytes, int64_t count, std::vector<PageRef>& out) {
  if (page_bytes <= 0 || page_bytes > kPageBytesMax)
    return Status(Code::invalid_argument,
                  text("a KV page of ", page_bytes, " bytes: must be 1 to ", kPageBytesMax));
  if (count < 0) return Status(Code::invalid_argument, text(count, " KV pages wanted"));
  // One lock over all of them: of two callers after the last pages, one must get them.
  const std::lock_guard<std::mutex> lock(state_->mutex);
  Acquisition acquisition(*this, out);
  return acquisition.run(round_up(page_bytes, kLineBytes), count);
}

// Buffers go after the lock: the host's allocator may be slow. A page that is cached may drive out
// several smaller ones, one at a time.
void PagePool::release(PageRef& ref) {
  Buffer unwanted;
  bool more = false;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    unwanted = state_->drop(ref.id_);
    more = state_->over_cached();
  }
  ref.pool_ = nullptr;
  ref.data_ = nullptr;
  while (more) {
    Buffer reclaimed;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->over_cached()) reclaimed = state_->reclaim_oldest();
    more = state_->over_cached();
  }
}

// Under the lock.
PageRef PagePool::hold(PageId id) {
  state_->hold(id);
  PageRef ref;
  ref.pool_ = this;
  ref.data_ = state_->slabs.data(id);
  ref.id_ = id;
  return ref;
}

void PagePool::share(std::span<const PageRef> pages, std::vector<PageRef>& out) {
  out.reserve(out.size() + pages.size());
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (const PageRef& page : pages) out.push_back(page ? hold(page.id_) : PageRef());
}

bool PagePool::own(const PageRef& page) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const PageNote& note = state_->slabs.note(page.id_);
  if (note.references > 1) return false;
  if (note.group >= 0) state_->forget(page.id_);
  return true;
}

int64_t PagePool::count_shared(std::span<const PageRef> pages) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return std::count_if(pages.begin(), pages.end(), [this](const PageRef& page) {
    return page && state_->slabs.note(page.id_).references > 1;
  });
}

void PagePool::seal(const SealedBlock& block) {
  std::vector<PageRef> replaced;  // let go of after the lock
  try {
    replaced.reserve(block.pages.size());
    const std::lock_guard<std::mutex> lock(state_->mutex);
    PrefixIndex::Block* known = state_->index.insert(block.root, block.prefix, block.hashes);
    for (size_t group = 0; known != nullptr && group < block.pages.size(); ++group) {
      PageRef* page = block.pages[group];
      if (page == nullptr) continue;
      const PageId same = known->page(group);
      if (!same) {
        state_->seal(page->id_, *known, block.hashes.back(), group);
      } else if (!(same == page->id_)) {
        replaced.push_back(std::exchange(*page, hold(same)));
      }
    }
  } catch (const std::bad_alloc&) {
    // What is not known is computed again.
  }
}

BlockHash PagePool::new_root() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::array<int32_t, kPageTokens> number{};
  number[0] = ++state_->roots;
  return block_hash(0, number);
}

PrefixPages PagePool::find(BlockHash root, std::span<const int32_t> tokens,
                           std::span<const KvGroup> groups) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<const PrefixIndex::Block*> chain;
  std::vector<int64_t> run(groups.size(), 0);  // pages in a row up to the last block, by group
  int64_t best = 0;
  BlockHash parent = root;
  const auto count = static_cast<int64_t>(tokens.size()) / kPageTokens;
  for (int64_t i = 0; i < count; ++i) {
    const std::span<const int32_t, kPageTokens> own_tokens(
        tokens.subspan(static_cast<size_t>(i * kPageTokens), kPageTokens));
    const PrefixIndex::Block* block = state_->index.find(parent, own_tokens);
    if (block == nullptr) break;
    chain.push_back(block);
    parent = block_hash(parent, own_tokens);
    bool enough = true;
    for (size_t g = 0; g < groups.size(); ++g) {
      run[g] = block->page(g) ? run[g] + 1 : 0;
      const int64_t next = (i + 1) * kPageTokens;
      enough = enough && run[g] >= i + 1 - groups[g].first_page_seen(next);
    }
    if (enough) best = i + 1;
  }
  PrefixPages out;
  out.groups.resize(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    out.groups[g].resize(static_cast<size_t>(best));
    for (int64_t i = groups[g].first_page_seen(best * kPageTokens); i < best; ++i) {
      const auto at = static_cast<size_t>(i);
      out.groups[g][at] = hold(chain[at]->page(g));
    }
  }
  out.blocks = best;
  return out;
}

Miss PagePool::why_missed(BlockHash root, std::span<const int32_t> tokens,
                          std::span<const KvGroup> groups) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto first = tokens.first<kPageTokens>();
  if (const PrefixIndex::Block* block = state_->index.find(root, first)) {
    for (size_t g = 0; g < groups.size(); ++g)
      if (groups[g].window == 0 && !block->page(g)) return Miss::reclaimed;
    return Miss::window;
  }
  const auto end =
      state_->forgotten.begin() +
      static_cast<std::ptrdiff_t>(std::min(state_->forgotten_count, state_->forgotten.size()));
  if (std::find(state_->forgotten.begin(), end, block_hash(root, first)) != end)
    return state_->limits.cached_bytes == 0 ? Miss::not_kept : Miss::reclaimed;
  return state_->index.known_elsewhere(root, first) ? Miss::elsewhere : Miss::unknown;
}

KvEventsTaken PagePool::take_events(std::span<KvEvent> out) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  EventLog& events = state_->events;
  if (events.must_restart()) {
    std::vector<KvEvent> all = {KvEvent{}};
    state_->index.each_page([&](BlockHash hash, const PrefixIndex::Block& block, size_t group) {
      all.push_back(
          {KvEventType::stored, static_cast<int32_t>(group), hash, block.parent, block.tokens});
    });
    events.restart(std::move(all));
  }
  return events.take(out);
}

void PagePool::trim() {
  for (bool more = true; more;) {
    Buffer unwanted;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->oldest) unwanted = state_->reclaim_oldest();
    more = bool(state_->oldest);
    if (more) continue;
    state_->slabs.release_spares();
    if (state_->index.blocks() == 0) state_->events.add({});
  }
}

PoolCounts PagePool::State::now() const {
  PoolCounts out = counts;
  const int64_t limit = allocator->limit_bytes();
  out.bytes_free = kUnlimited;
  if (limit > 0) {
    const int64_t unused = std::max<int64_t>(0, limit - allocator->bytes_used());
    out.bytes_free = unused + slabs.bytes() - out.bytes_held;
  }
  const int64_t budget = limits.budget_bytes;
  if (budget > 0) out.bytes_free = std::min(out.bytes_free, budget - out.bytes_held);
  out.bytes_budget = budget > 0 ? budget : limit;
  return out;
}

PoolCounts PagePool::counts() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->now();
}

PoolView PagePool::view() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  PoolView out;
  out.pages_free = state_->slabs.pages_free();
  for (const PageId page : state_->slabs.taken()) {
    const PageNote& note = state_->slabs.note(page);
    out.pages.push_back({page, note.references, note.group, note.block, state_->bytes(page)});
  }
  out.pages_total = state_->slabs.pages();
  for (PageId page = state_->oldest; page; page = state_->slabs.note(page).newer)
    out.cached.push_back(page);
  state_->index.each_page([&](BlockHash hash, const PrefixIndex::Block& block, size_t group) {
    out.indexed.push_back({block.pages[group], static_cast<int32_t>(group), hash});
  });
  out.known_blocks = state_->index.blocks();
  out.known_roots = state_->index.roots();
  out.counts = state_->now();
  return out;
}

}  // namespace optima::kv
