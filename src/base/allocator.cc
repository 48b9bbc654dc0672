// Counts and limits the engine's large blocks; see allocator.h. Small objects (strings, vectors,
// tables) use the C++ allocator: their failure is an exception that the boundary turns into a
// status.
//
// Without a host allocator, blocks from one huge page up are mapped straight from the system: they
// come zeroed, cost memory only where they are touched (a long context's KV pages), can be backed
// by huge pages, and go back to the system when released. Under the sanitizers they come from
// malloc, so that each block's bounds and lifetime are watched.
#include "base/allocator.h"

#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "base/text.h"

namespace optima {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// Half of a 48-bit address space: what no process on today's machines can have.
constexpr size_t kAddressableBytes = size_t{1} << 47;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMapLargeBlocks = false;
#else
constexpr bool kMapLargeBlocks = true;
#endif

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool is_mapped(size_t size) {
  return kMapLargeBlocks && size >= kHugePage;
}

// `size` zeroed bytes at a multiple of kHugePage, or null. Mapped larger, then cut to fit, because
// mmap aligns to small pages only.
void* map_block(size_t size) {
  const size_t whole = round_up(size, kHugePage) + kHugePage;
  void* mapping =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapping);
  const size_t past = reinterpret_cast<uintptr_t>(first) % kHugePage;
  const size_t lead = past == 0 ? 0 : kHugePage - past;
  const size_t kept = round_up(size, kHugePage);
  if (lead > 0) ::munmap(first, lead);
  ::munmap(first + lead + kept, whole - lead - kept);
  // Only a hint: without huge pages the block works the same.
  (void)::madvise(first + lead, kept, MADV_HUGEPAGE);
  return first + lead;
}

void unmap_block(void* memory, size_t size) {
  ::munmap(memory, round_up(size, kHugePage));
}

void* take_block(const HostAllocator& host, size_t size) {
  const size_t alignment = size >= kHugePage ? kHugePage : kLine;
  void* memory = nullptr;
  if (host.allocate != nullptr) {
    memory = host.allocate(host.user, size, alignment);
  } else if (is_mapped(size)) {
    return map_block(size);
  } else {
    memory = std::aligned_alloc(alignment, round_up(size, alignment));
  }
  if (memory != nullptr) std::memset(memory, 0, size);
  return memory;
}

}  // namespace

Buffer::~Buffer() {
  if (data_ != nullptr) owner_->release(data_, size_);
}

Result<Buffer> Allocator::allocate(size_t bytes, std::string_view what) {
  if (bytes > kAddressableBytes)
    return Status(
        Code::oom_host,
        text(what, ": ", bytes, " bytes wanted, ", kAddressableBytes, " can be addressed at most"),
        {bytes > static_cast<size_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(bytes), -1,
         static_cast<int64_t>(kAddressableBytes)});
  const size_t size = round_up(bytes == 0 ? 1 : bytes, kLine);
  const auto wanted = static_cast<int64_t>(size);
  OPTIMA_TRY(reserve(wanted, what));
  void* memory = take_block(host_, size);
  if (memory == nullptr) {
    used_.fetch_sub(wanted, std::memory_order_relaxed);
    return Status(Code::oom_host, text(what, ": the allocator refused ", wanted, " bytes"),
                  {wanted, -1, limit_bytes_ > 0 ? limit_bytes_ : -1});
  }
  Buffer buffer;
  buffer.owner_ = this;
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_ = size;
  return buffer;
}

// A refused request never shows in used_, so that it cannot make another one fail.
Status Allocator::reserve(int64_t wanted, std::string_view what) {
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (limit_bytes_ > 0 && wanted > limit_bytes_ - used) {
      const int64_t free_bytes = limit_bytes_ > used ? limit_bytes_ - used : 0;
      return Status(Code::oom_host,
                    text(what, ": ", wanted, " bytes wanted, ", free_bytes,
                         " free under the memory limit of ", limit_bytes_),
                    {wanted, free_bytes, limit_bytes_});
    }
  } while (!used_.compare_exchange_weak(used, used + wanted, std::memory_order_relaxed));
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (used + wanted > peak &&
         !peak_.compare_exchange_weak(peak, used + wanted, std::memory_order_relaxed)) {
  }
  return {};
}

void Allocator::release(std::byte* data, size_t bytes) {
  if (host_.release != nullptr) {
    host_.release(host_.user, data, bytes);
  } else if (is_mapped(bytes)) {
    unmap_block(data, bytes);
  } else {
    std::free(data);
  }
  used_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace optima
