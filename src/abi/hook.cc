// The ends of the host's cookies and blocks. Hooks run on whichever thread lets go last, and what
// they throw stops here.

#include "abi/hook.h"

#include "abi/guard.h"

namespace optima::abi {

ReleaseOnce::~ReleaseOnce() {
  if (release_ == nullptr) return;
  contain([&] { release_(user_); });
}

HostAllocator HostMemory::allocator() {
  return {.allocate = allocate, .release = release, .user = this};
}

void HostMemory::let_go() {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void* HostMemory::allocate(void* self, size_t bytes, size_t alignment) {
  auto* memory = static_cast<HostMemory*>(self);
  void* block = nullptr;
  contain([&] { block = memory->alloc_(memory->user_, bytes, alignment); });
  if (block != nullptr) memory->hold();
  return block;
}

void HostMemory::release(void* self, void* block, size_t bytes) {
  auto* memory = static_cast<HostMemory*>(self);
  contain([&] { memory->free_(memory->user_, block, bytes); });
  memory->let_go();
}

}  // namespace optima::abi
