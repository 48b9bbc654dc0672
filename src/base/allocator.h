// Every large block of an engine (weights read into memory, KV pages, activations, repacked
// tensors) comes from one Allocator: it counts, keeps the limit and asks the host's allocator
// where one was given.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace optima {

// The host's own allocator: both functions or neither, called from any thread. allocate returns
// memory aligned to `alignment` (a power of two, at least 64) or null.
struct HostAllocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment) = nullptr;
  void (*release)(void* user, void* memory, size_t bytes) = nullptr;
  void* user = nullptr;
};

class Allocator;

// Owns one block; movable. The Allocator must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer();
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }  // what was asked for, rounded up to 64
  explicit operator bool() const { return data_ != nullptr; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  void swap(Buffer& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

 private:
  friend class Allocator;
  Allocator* owner_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Thread-safe. limit_bytes 0 = no limit but the machine's.
class Allocator {
 public:
  Allocator(HostAllocator host, int64_t limit_bytes) : host_(host), limit_bytes_(limit_bytes) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Zeroed memory, aligned to 64 bytes (large blocks to 2 MiB so that huge pages can back them).
  // Fails with oom_host: bytes wanted, bytes free under the limit, limit. `what` names the use.
  Result<Buffer> allocate(size_t bytes, std::string_view what);

  int64_t bytes_used() const { return used_.load(std::memory_order_relaxed); }
  int64_t bytes_peak() const { return peak_.load(std::memory_order_relaxed); }
  int64_t limit_bytes() const { return limit_bytes_; }

 private:
  friend class Buffer;
  Status reserve(int64_t wanted, std::string_view what);
  void release(std::byte* data, size_t bytes);

  HostAllocator host_;
  int64_t limit_bytes_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace optima
