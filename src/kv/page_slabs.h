// The memory of pages: slabs of several pages of one size. Knows which pages are free, not what the
// others are for. Without a lock: the page pool has one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "kv/prefix_index.h"

namespace optima::kv {

// What the pool notes of a page that is not free.
struct PageNote {
  int32_t references = 0;
  int32_t group = -1;  // sealed: the group and block it is known for; -1 = open
  BlockHash block = 0;
  PageId older, newer;  // the list of cached pages
};

class PageSlabs {
 public:
  explicit PageSlabs(Allocator& allocator) : allocator_(&allocator) {}

  // The size class of pages of `stride` bytes, made when it is new.
  int32_t class_of(int64_t stride);
  int64_t stride(int32_t size_class) const { return at(size_class).stride; }

  // A page, of a new slab when no other has one: of at most `pages_max` pages, and, where memory is
  // short, of no more than `wanted`.
  Result<PageId> take(int32_t size_class, int64_t wanted, int64_t pages_max);
  // Returns the memory of a slab that is no longer wanted, for the caller to let go of.
  Buffer give(PageId page);

  // Gives empty slabs back to the allocator; whether there were any.
  bool release_spares();

  unsigned char* data(PageId page) const;
  PageNote& note(PageId page);
  int64_t bytes() const { return bytes_; }
  // Of all slabs.
  int64_t pages() const;
  int64_t pages_free() const;
  std::vector<PageId> taken() const;  // those that are not free

 private:
  struct Slab {
    Buffer memory;
    std::vector<int32_t> free;  // stack of page numbers; capacity = pages, so a push cannot fail
    std::vector<PageNote> notes;
    int32_t pages = 0;
    int32_t previous = -1, next = -1;  // list of slabs with a free page
    bool empty() const { return static_cast<int32_t>(free.size()) == pages; }
  };
  struct SizeClass {
    int64_t stride = 0;      // bytes from page to page
    int32_t slab_pages = 0;  // pages of a full-sized slab
    std::vector<std::unique_ptr<Slab>> slabs;
    std::vector<int32_t> vacant;  // slots of `slabs` that hold none; capacity >= slabs.size()
    int32_t front = -1;           // the slab whose pages are handed out next
    int32_t spare = -1;           // the one empty slab that is kept
    void link_front(int32_t slot);
    void unlink(int32_t slot);
    Buffer remove(int32_t slot);
  };

  SizeClass& at(int32_t size_class) { return classes_[static_cast<size_t>(size_class)]; }
  const SizeClass& at(int32_t size_class) const {
    return classes_[static_cast<size_t>(size_class)];
  }
  Slab& slab_of(PageId page) const;
  void add_slab(SizeClass& size_class, Buffer memory, int32_t pages);
  Status grow(SizeClass& size_class, int64_t wanted, int64_t pages_max);

  Allocator* allocator_;
  std::vector<SizeClass> classes_;
  int64_t bytes_ = 0;
};

}  // namespace optima::kv
