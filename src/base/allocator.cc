// Counts and limits the engine's large blocks; see allocator.h. Small objects (strings, vectors,
// tables) use the C++ allocator: their failure is an exception that the boundary turns into a
// status.
#include "base/allocator.h"

#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace optima {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Buffer::~Buffer() {
  if (data_ != nullptr) owner_->release(data_, size_);
}

Result<Buffer> Allocator::allocate(size_t bytes, std::string_view what) {
  if (bytes > static_cast<size_t>(INT64_MAX) / 2)
    return Status(Code::oom_host, text(what, ": ", bytes, " bytes is more than can be addressed"));
  const size_t alignment = bytes >= kHugePage ? kHugePage : kLine;
  const size_t size = round_up(bytes == 0 ? 1 : bytes, kLine);
  const auto wanted = static_cast<int64_t>(size);
  const int64_t before = used_.fetch_add(wanted, std::memory_order_relaxed);
  if (limit_bytes_ > 0 && before + wanted > limit_bytes_) {
    used_.fetch_sub(wanted, std::memory_order_relaxed);
    const int64_t free_bytes = limit_bytes_ > before ? limit_bytes_ - before : 0;
    return Status(Code::oom_host,
                  text(what, ": ", wanted, " bytes wanted, ", free_bytes,
                       " free under the memory limit of ", limit_bytes_),
                  {wanted, free_bytes, limit_bytes_});
  }
  void* memory = host_.allocate != nullptr ? host_.allocate(host_.user, size, alignment)
                                           : std::aligned_alloc(alignment, round_up(size, alignment));
  if (memory == nullptr) {
    used_.fetch_sub(wanted, std::memory_order_relaxed);
    return Status(Code::oom_host, text(what, ": the allocator refused ", wanted, " bytes"),
                  {wanted, -1, limit_bytes_ > 0 ? limit_bytes_ : -1});
  }
  std::memset(memory, 0, size);
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (before + wanted > peak && !peak_.compare_exchange_weak(peak, before + wanted)) {
  }
  Buffer buffer;
  buffer.owner_ = this;
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_ = size;
  return buffer;
}

void Allocator::release(std::byte* data, size_t bytes) {
  if (host_.release != nullptr) {
    host_.release(host_.user, data, bytes);
  } else {
    std::free(data);
  }
  used_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace optima
