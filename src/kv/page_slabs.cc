// Pages of one (rounded) size form a size class; a class owns slabs of several pages, and slabs
// that still have a free page are linked in a list whose front is the one touched last. A page
// given back is the next one handed out, because its lines are the warmest. Every operation is
// constant time; only taking or giving back a slab calls the allocator.
#include "kv/page_slabs.h"

#include <algorithm>
#include <utility>

namespace optima::kv {
namespace {

constexpr int64_t kSlabBytes = int64_t{2} << 20;  // a huge page
constexpr int64_t kSlabPagesMin = 4;
constexpr int32_t kNone = -1;

// As many pages as fit into the whole huge pages that at least kSlabPagesMin pages need.
int32_t slab_pages_of(int64_t stride) {
  const int64_t wanted = std::max(kSlabBytes, kSlabPagesMin * stride);
  const int64_t bytes = (wanted + kSlabBytes - 1) / kSlabBytes * kSlabBytes;
  return static_cast<int32_t>(bytes / stride);
}

}  // namespace

void PageSlabs::SizeClass::link_front(int32_t slot) {
  Slab& slab = *slabs[slot];
  slab.previous = kNone;
  slab.next = front;
  if (front != kNone) slabs[front]->previous = slot;
  front = slot;
}

void PageSlabs::SizeClass::unlink(int32_t slot) {
  Slab& slab = *slabs[slot];
  (slab.previous == kNone ? front : slabs[slab.previous]->next) = slab.next;
  if (slab.next != kNone) slabs[slab.next]->previous = slab.previous;
  slab.previous = slab.next = kNone;
}

// Takes an empty slab out of the class; its memory goes to the caller.
Buffer PageSlabs::SizeClass::remove(int32_t slot) {
  unlink(slot);
  if (spare == slot) spare = kNone;
  Buffer memory = std::move(slabs[slot]->memory);
  slabs[slot].reset();
  vacant.push_back(slot);
  return memory;
}

int32_t PageSlabs::class_of(int64_t stride) {
  // A model has a handful of group sizes, so the search is short.
  for (size_t i = 0; i < classes_.size(); ++i)
    if (classes_[i].stride == stride) return static_cast<int32_t>(i);
  SizeClass size_class;
  size_class.stride = stride;
  size_class.slab_pages = slab_pages_of(stride);
  classes_.push_back(std::move(size_class));
  return static_cast<int32_t>(classes_.size() - 1);
}

PageSlabs::Slab& PageSlabs::slab_of(PageId page) const {
  const SizeClass& size_class = at(page.size_class);
  return *size_class.slabs[static_cast<size_t>(page.index / size_class.slab_pages)];
}

unsigned char* PageSlabs::data(PageId page) const {
  const SizeClass& size_class = at(page.size_class);
  return slab_of(page).memory.as<unsigned char>() +
         page.index % size_class.slab_pages * size_class.stride;
}

PageNote& PageSlabs::note(PageId page) {
  return slab_of(page).notes[static_cast<size_t>(page.index % at(page.size_class).slab_pages)];
}

int64_t PageSlabs::pages() const {
  int64_t pages = 0;
  for (const SizeClass& size_class : classes_)
    for (const auto& slab : size_class.slabs) pages += slab != nullptr ? slab->pages : 0;
  return pages;
}

int64_t PageSlabs::pages_free() const {
  int64_t pages = 0;
  for (const SizeClass& size_class : classes_)
    for (const auto& slab : size_class.slabs)
      pages += slab != nullptr ? static_cast<int64_t>(slab->free.size()) : 0;
  return pages;
}

std::vector<PageId> PageSlabs::taken() const {
  std::vector<PageId> out;
  for (size_t c = 0; c < classes_.size(); ++c)
    for (size_t slot = 0; slot < classes_[c].slabs.size(); ++slot) {
      const Slab* slab = classes_[c].slabs[slot].get();
      if (slab == nullptr) continue;
      std::vector<bool> is_free(static_cast<size_t>(slab->pages));
      for (const int32_t page : slab->free) is_free[static_cast<size_t>(page)] = true;
      const int32_t first = static_cast<int32_t>(slot) * classes_[c].slab_pages;
      for (int32_t page = 0; page < slab->pages; ++page)
        if (!is_free[static_cast<size_t>(page)])
          out.push_back({static_cast<int32_t>(c), first + page});
    }
  return out;
}

void PageSlabs::add_slab(SizeClass& size_class, Buffer memory, int32_t pages) {
  auto slab = std::make_unique<Slab>();
  slab->pages = pages;
  slab->free.resize(pages);
  slab->notes.resize(pages);
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
  bytes_ += static_cast<int64_t>(memory.size());
  size_class.slabs[slot]->memory = std::move(memory);
  size_class.link_front(slot);
  size_class.spare = slot;
}

bool PageSlabs::release_spares() {
  bool released = false;
  for (SizeClass& size_class : classes_) {
    if (size_class.spare == kNone) continue;
    bytes_ -= static_cast<int64_t>(size_class.remove(size_class.spare).size());
    released = true;
  }
  return released;
}

// One more slab. Near the limit a full-sized one may be refused where a smaller one fits: after the
// empty slabs of the other classes were given back, no more is asked for than is wanted now (what a
// class hoards there the others lack), then less, down to one page.
Status PageSlabs::grow(SizeClass& size_class, int64_t wanted, int64_t pages_max) {
  int64_t pages = std::min<int64_t>(size_class.slab_pages, pages_max);
  while (true) {
    const auto bytes = static_cast<size_t>(pages * size_class.stride);
    Result<Buffer> memory = allocator_->allocate(bytes, "kv pages");
    if (memory.ok()) {
      add_slab(size_class, memory.take(), static_cast<int32_t>(pages));
      return {};
    }
    if (release_spares()) continue;
    if (pages == 1) return memory.take_status();
    pages = std::min(pages / 2, wanted);
  }
}

Result<PageId> PageSlabs::take(int32_t class_index, int64_t wanted, int64_t pages_max) {
  SizeClass& size_class = at(class_index);
  if (size_class.front == kNone) OPTIMA_TRY(grow(size_class, wanted, pages_max));
  const int32_t slot = size_class.front;
  Slab& slab = *size_class.slabs[slot];
  const int32_t page = slab.free.back();
  slab.free.pop_back();
  if (slab.free.empty()) size_class.unlink(slot);
  if (size_class.spare == slot) size_class.spare = kNone;
  slab.notes[static_cast<size_t>(page)] = {};
  return PageId{class_index, slot * size_class.slab_pages + page};
}

Buffer PageSlabs::give(PageId page) {
  SizeClass& size_class = at(page.size_class);
  const int32_t slot = page.index / size_class.slab_pages;
  Slab& slab = *size_class.slabs[slot];
  if (!slab.free.empty()) size_class.unlink(slot);
  slab.free.push_back(page.index % size_class.slab_pages);
  size_class.link_front(slot);
  if (!slab.empty()) return {};
  // The slab emptied last is the warmer one: keep it and let the earlier one go.
  const int32_t old_spare = std::exchange(size_class.spare, slot);
  if (old_spare == kNone) return {};
  Buffer memory = size_class.remove(old_spare);
  bytes_ -= static_cast<int64_t>(memory.size());
  return memory;
}

}  // namespace optima::kv
