// Hands out pages of KV memory. Pages of one (rounded) size form a size class; a class owns slabs
// of several pages, and slabs that still have a free page are linked in a list whose front is the
// one touched last. A page given back is the next one handed out, because its lines are the
// warmest. Every operation is constant time; only taking or giving back a slab calls the allocator.
//
// The budget counts pages held, so that what is left is exact whatever the mix of sizes. Memory in
// slabs beyond that (at most one empty slab per class, and the free pages of partly used slabs) is
// counted by the allocator and is what its limit bounds.
#include "kv/page_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"

namespace optima::kv {
namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kSlabBytes = int64_t{2} << 20;  // a huge page
constexpr int64_t kSlabPagesMin = 4;
constexpr int64_t kPageBytesMax = int64_t{1} << 40;
constexpr int32_t kNone = -1;

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// As many pages as fit into the whole huge pages that at least kSlabPagesMin pages need.
int32_t slab_pages_of(int64_t stride) {
  const int64_t bytes = round_up(std::max(kSlabBytes, kSlabPagesMin * stride), kSlabBytes);
  return static_cast<int32_t>(bytes / stride);
}

struct Slab {
  Buffer memory;
  std::vector<int32_t> free;  // stack of page numbers; capacity = pages, so a push cannot fail
  std::vector<int32_t> references;  // [pages]
  int32_t pages = 0;
  int32_t previous = kNone, next = kNone;  // list of slabs with a free page
  bool empty() const { return static_cast<int32_t>(free.size()) == pages; }
};

struct SizeClass {
  int64_t stride = 0;      // bytes from page to page
  int32_t slab_pages = 0;  // pages of a full-sized slab
  std::vector<std::unique_ptr<Slab>> slabs;
  std::vector<int32_t> vacant;  // slots of `slabs` that hold none; capacity >= slabs.size()
  int32_t front = kNone;        // the slab whose pages are handed out next
  int32_t spare = kNone;        // the one empty slab that is kept

  void link_front(int32_t slot) {
    Slab& slab = *slabs[slot];
    slab.previous = kNone;
    slab.next = front;
    if (front != kNone) slabs[front]->previous = slot;
    front = slot;
  }
  void unlink(int32_t slot) {
    Slab& slab = *slabs[slot];
    (slab.previous == kNone ? front : slabs[slab.previous]->next) = slab.next;
    if (slab.next != kNone) slabs[slab.next]->previous = slab.previous;
    slab.previous = slab.next = kNone;
  }
  // Takes an empty slab out of the class; its memory goes to the caller.
  Buffer remove(int32_t slot) {
    unlink(slot);
    if (spare == slot) spare = kNone;
    Buffer memory = std::move(slabs[slot]->memory);
    slabs[slot].reset();
    vacant.push_back(slot);
    return memory;
  }
};

struct Page {
  unsigned char* data;
  int32_t index;  // slot * slab_pages + page within the slab
};

}  // namespace

struct PagePool::State {
  Allocator* allocator;
  int64_t budget_bytes;
  mutable std::mutex mutex;
  std::vector<SizeClass> classes;
  int64_t bytes_held = 0;
  int64_t pages_held = 0;
  int64_t references = 0;
  int64_t slab_bytes = 0;

  int32_t class_of(int64_t stride);
  int64_t pages_affordable(int64_t stride) const;
  void add_slab(SizeClass& size_class, Buffer memory, int32_t pages);
  Status grow(SizeClass& size_class, int64_t wanted);
  bool release_spares();
  Result<Page> take(SizeClass& size_class, int64_t wanted);
  int32_t& references_of(SizeClass& size_class, int32_t index);
  Buffer drop(SizeClass& size_class, int32_t index);
  Buffer give(SizeClass& size_class, int32_t index);
};

int32_t PagePool::State::class_of(int64_t stride) {
  // A model has a handful of group sizes, so the search is short.
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i].stride == stride) return static_cast<int32_t>(i);
  SizeClass size_class;
  size_class.stride = stride;
  size_class.slab_pages = slab_pages_of(stride);
  classes.push_back(std::move(size_class));
  return static_cast<int32_t>(classes.size() - 1);
}

int64_t PagePool::State::pages_affordable(int64_t stride) const {
  if (budget_bytes == 0) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, budget_bytes - bytes_held) / stride;
}

void PagePool::State::add_slab(SizeClass& size_class, Buffer memory, int32_t pages) {
  auto slab = std::make_unique<Slab>();
  slab->pages = pages;
  slab->free.resize(pages);
  slab->references.resize(pages);
  for (int32_t i = 0; i < pages; ++i) slab->free[i] = pages - 1 - i;
  // Room for one more slot first: remove() runs in destructors and must not allocate.
  size_class.vacant.reserve(size_class.slabs.size() + 1);
  int32_t slot = static_cast<int32_t>(size_class.slabs.size());
  if (size_class.vacant.empty()) {
    size_class.slabs.push_back(std::move(slab));
  } else {
    slot = size_class.vacant.back();
    size_class.vacant.pop_back();
    size_class.slabs[slot] = std::move(slab);
  }
  slab_bytes += static_cast<int64_t>(memory.size());
  size_class.slabs[slot]->memory = std::move(memory);
  size_class.link_front(slot);
  size_class.spare = slot;
}

bool PagePool::State::release_spares() {
  bool released = false;
  for (SizeClass& size_class : classes) {
    if (size_class.spare == kNone) continue;
    slab_bytes -= static_cast<int64_t>(size_class.remove(size_class.spare).size());
    released = true;
  }
  return released;
}

// One more slab. Near the limit a full-sized one may be refused where a smaller one fits: after the
// empty slabs of the other classes were given back, no more is asked for than is wanted now (what a
// class hoards there the others lack), then less, down to one page.
Status PagePool::State::grow(SizeClass& size_class, int64_t wanted) {
  int64_t pages = std::min<int64_t>(size_class.slab_pages, pages_affordable(size_class.stride));
  while (true) {
    const auto bytes = static_cast<size_t>(pages * size_class.stride);
    Result<Buffer> memory = allocator->allocate(bytes, "kv pages");
    if (memory.ok()) {
      add_slab(size_class, memory.take(), static_cast<int32_t>(pages));
      return {};
    }
    if (release_spares()) continue;
    if (pages == 1) return memory.take_status();
    pages = std::min(pages / 2, wanted);
  }
}

// The caller has checked the budget. `wanted`: this page and those the caller takes after it.
Result<Page> PagePool::State::take(SizeClass& size_class, int64_t wanted) {
  if (size_class.front == kNone) OPTIMA_TRY(grow(size_class, wanted));
  const int32_t slot = size_class.front;
  Slab& slab = *size_class.slabs[slot];
  const int32_t page = slab.free.back();
  slab.free.pop_back();
  if (slab.free.empty()) size_class.unlink(slot);
  if (size_class.spare == slot) size_class.spare = kNone;
  bytes_held += size_class.stride;
  ++pages_held;
  ++references;
  slab.references[page] = 1;
  auto* data = slab.memory.as<unsigned char>() + page * size_class.stride;
  return Page{data, slot * size_class.slab_pages + page};
}

int32_t& PagePool::State::references_of(SizeClass& size_class, int32_t index) {
  return size_class.slabs[index / size_class.slab_pages]->references[index % size_class.slab_pages];
}

// One hold less; the last one gives the page back.
Buffer PagePool::State::drop(SizeClass& size_class, int32_t index) {
  --references;
  return --references_of(size_class, index) > 0 ? Buffer() : give(size_class, index);
}

// Returns the memory of a slab that is no longer wanted, for the caller to let go of.
Buffer PagePool::State::give(SizeClass& size_class, int32_t index) {
  const int32_t slot = index / size_class.slab_pages;
  Slab& slab = *size_class.slabs[slot];
  if (!slab.free.empty()) size_class.unlink(slot);
  slab.free.push_back(index % size_class.slab_pages);
  size_class.link_front(slot);
  bytes_held -= size_class.stride;
  --pages_held;
  if (!slab.empty()) return {};
  // The slab emptied last is the warmer one: keep it and let the earlier one go.
  const int32_t old_spare = std::exchange(size_class.spare, slot);
  if (old_spare == kNone) return {};
  Buffer memory = size_class.remove(old_spare);
  slab_bytes -= static_cast<int64_t>(memory.size());
  return memory;
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
      state_.drop(state_.classes[out_[i].size_class_], out_[i].index_);
      out_[i].pool_ = nullptr;
    }
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(before_), out_.end());
  }

  Status run(int64_t stride, int64_t count) {
    const int64_t affordable = state_.pages_affordable(stride);
    if (count > affordable)
      return refuse(stride, {count, affordable},
                    text("the KV budget is ", state_.budget_bytes, " bytes, of which ",
                         state_.bytes_held, " are held"));
    const int32_t size_class = state_.class_of(stride);
    out_.reserve(before_ + static_cast<size_t>(std::min(count, kReserveMax)));
    for (int64_t taken = 0; taken < count; ++taken) {
      out_.emplace_back();
      Result<Page> page = state_.take(state_.classes[size_class], count - taken);
      if (!page.ok()) {
        out_.pop_back();
        return refuse(stride, {count, taken}, page.status().message());
      }
      PageRef& ref = out_.back();
      ref.pool_ = &pool_;
      ref.data_ = page->data;
      ref.size_class_ = size_class;
      ref.index_ = page->index;
    }
    complete_ = true;
    return {};
  }

 private:
  static constexpr int64_t kReserveMax = 1 << 16;

  Status refuse(int64_t stride, ErrorNumbers numbers, const std::string& why) const {
    if (state_.budget_bytes > 0) numbers.limit = state_.budget_bytes / stride;
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
      size_class_(other.size_class_),
      index_(other.index_) {}

PageRef& PageRef::operator=(PageRef&& other) noexcept {
  if (this == &other) return *this;
  reset();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_class_ = other.size_class_;
  index_ = other.index_;
  return *this;
}

PageRef::~PageRef() {
  reset();
}

void PageRef::reset() {
  if (pool_ != nullptr) pool_->release(*this);
}

PagePool::PagePool(Allocator& allocator, int64_t budget_bytes) : state_(std::make_unique<State>()) {
  state_->allocator = &allocator;
  state_->budget_bytes = budget_bytes;
}

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

void PagePool::release(PageRef& ref) {
  Buffer unwanted;  // let go of after the lock: the host's allocator may be slow
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    unwanted = state_->drop(state_->classes[ref.size_class_], ref.index_);
  }
  ref.pool_ = nullptr;
  ref.data_ = nullptr;
}

void PagePool::share(std::span<const PageRef> pages, std::vector<PageRef>& out) {
  out.reserve(out.size() + pages.size());
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (const PageRef& page : pages) {
    PageRef& copy = out.emplace_back();
    if (!page) continue;
    ++state_->references_of(state_->classes[page.size_class_], page.index_);
    ++state_->references;
    copy.pool_ = page.pool_;
    copy.data_ = page.data_;
    copy.size_class_ = page.size_class_;
    copy.index_ = page.index_;
  }
}

bool PagePool::is_shared(const PageRef& page) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return page && state_->references_of(state_->classes[page.size_class_], page.index_) > 1;
}

PoolCounts PagePool::counts() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const int64_t limit = state_->allocator->limit_bytes();
  int64_t free_bytes = std::numeric_limits<int64_t>::max();
  if (limit > 0) {
    const int64_t unused = std::max<int64_t>(0, limit - state_->allocator->bytes_used());
    free_bytes = unused + state_->slab_bytes - state_->bytes_held;
  }
  if (state_->budget_bytes > 0)
    free_bytes = std::min(free_bytes, state_->budget_bytes - state_->bytes_held);
  return {state_->budget_bytes > 0 ? state_->budget_bytes : limit, state_->bytes_held, free_bytes,
          state_->pages_held, state_->references};
}

}  // namespace optima::kv
