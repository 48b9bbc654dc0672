// Release hooks: the host is told exactly once that its cookie is no longer needed.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "base/allocator.h"
#include "optima/optima.h"

namespace optima::abi {

// Calls release(user) once, at its end. Movable.
class ReleaseOnce {
 public:
  ReleaseOnce() = default;
  ReleaseOnce(optima_release_fn release, void* user) : release_(release), user_(user) {}
  ReleaseOnce(ReleaseOnce&& other) noexcept
      : release_(std::exchange(other.release_, nullptr)), user_(other.user_) {}
  ReleaseOnce& operator=(ReleaseOnce&& other) noexcept {
    std::swap(release_, other.release_);
    std::swap(user_, other.user_);
    return *this;
  }
  ~ReleaseOnce();

 private:
  optima_release_fn release_ = nullptr;
  void* user_ = nullptr;
};

// The host's allocator with a count of what it still owes, so that its release hook comes after
// the last free even when a block outlives the engine's handles.
class HostMemory {
 public:
  HostMemory(optima_alloc_fn alloc, optima_free_fn free, void* user, ReleaseOnce release)
      : alloc_(alloc), free_(free), user_(user), release_(std::move(release)) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // An allocator whose `user` is this object; each block counts as one holder.
  HostAllocator allocator();
  // One holder more or less; the last one that goes deletes the object.
  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void let_go();

 private:
  ~HostMemory() = default;
  static void* allocate(void* self, size_t bytes, size_t alignment);
  static void release(void* self, void* memory, size_t bytes);

  optima_alloc_fn alloc_;
  optima_free_fn free_;
  void* user_;
  ReleaseOnce release_;
  std::atomic<int64_t> holders_{1};
};

}  // namespace optima::abi
