// Memory straight from the system, by pages of a chosen size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace optima {

enum class PageSize { small, huge };  // huge: wherever the system has them, else small

// Zeros until written; a page takes memory when it is first touched. Movable.
class AnonymousMapping {
 public:
  // Fails with oom_host.
  static Result<AnonymousMapping> create(int64_t bytes, PageSize pages);
  AnonymousMapping(AnonymousMapping&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
  AnonymousMapping& operator=(AnonymousMapping&&) = delete;
  ~AnonymousMapping();
  // Aligned to a huge page.
  unsigned char* data() const;

 private:
  AnonymousMapping(void* memory, size_t size) : memory_(memory), size_(size) {}
  void* memory_;
  size_t size_;
};

}  // namespace optima
