// mmap without a file.
#include "base/anonymous_mapping.h"

#include <sys/mman.h>

#include "base/text.h"

namespace optima {
namespace {
constexpr int64_t kHugePageBytes = int64_t{2} << 20;
}  // namespace

Result<AnonymousMapping> AnonymousMapping::create(int64_t bytes, PageSize pages) {
  const auto size = static_cast<size_t>(bytes + kHugePageBytes);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Status(Code::oom_host, text("cannot map ", bytes, " bytes"), {.wanted = bytes});
  }
  // Advice: a kernel without huge pages refuses it, and the pages are then small.
  ::madvise(memory, size, pages == PageSize::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return AnonymousMapping(memory, size);
}

AnonymousMapping::~AnonymousMapping() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

unsigned char* AnonymousMapping::data() const {
  const auto address = reinterpret_cast<uintptr_t>(memory_);
  const auto aligned = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  return static_cast<unsigned char*>(memory_) + (aligned - address);
}

}  // namespace optima
