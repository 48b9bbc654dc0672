// Switching stacks. See fiber.h.
#include "kernels/cuda_host/fiber.h"

#include <stdint.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define CE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CE_ASAN 1
#endif
#endif

#ifdef CE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// This file is not instrumented in builds for ThreadSanitizer: the build says that it is one.
#ifdef OPTIMA_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

extern "C" {
// Saves the registers that a call preserves on the present stack, its pointer in *save, and goes on
// where `load` was saved.
void optima_cuda_switch(void** save, void* load);
// What a new stack begins with: calls optima_cuda_begin(the fiber).
void optima_cuda_enter();
[[noreturn]] void optima_cuda_begin(optima::cuda_host::Fiber* fiber);
}

#if defined(__x86_64__)
asm(R"(
.pushsection .text
.type optima_cuda_switch,@function
optima_cuda_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size optima_cuda_switch,.-optima_cuda_switch
.type optima_cuda_enter,@function
optima_cuda_enter:
  mov %r12,%rdi
  xor %ebp,%ebp
  call optima_cuda_begin
.size optima_cuda_enter,.-optima_cuda_enter
.popsection
)");
#else
#error "the CUDA host shim has no stack switch for this architecture: see optima_cuda_switch"
#endif

namespace optima::cuda_host {
namespace {

// Kernels keep little on the stack; unoptimised and instrumented ones keep much more.
constexpr size_t kStackBytes = 128 * 1024;
constexpr size_t kGuardBytes = 64 * 1024;  // a multiple of every page size

void store_word(char* at, uint64_t word) {
  *reinterpret_cast<uint64_t*>(at) = word;
}

// The words that optima_cuda_switch pops from a new stack: zeros, but for the fiber and where to go
// on. Returns the stack's pointer.
char* first_frame(char* top, const void* fiber) {
  const auto enter = reinterpret_cast<uint64_t>(&optima_cuda_enter);
  constexpr size_t kFrameBytes = 72;  // six registers, where to return to; above, a call wants the
                                      // stack pointer to be a multiple of 16
  constexpr size_t kFiberAt = 24;     // r12
  constexpr size_t kEnterAt = 48;
  char* frame = top - kFrameBytes;
  for (size_t i = 0; i < kFrameBytes; i += 8) store_word(frame + i, 0);
  store_word(frame + kFiberAt, reinterpret_cast<uint64_t>(fiber));
  store_word(frame + kEnterAt, enter);
  return frame;
}

void leave(Context& from, const Context& to) {
#ifdef CE_ASAN
  __sanitizer_start_switch_fiber(&from.shadow_stack, to.stack, to.stack_bytes);
#endif
#ifdef OPTIMA_TSAN
  __tsan_switch_to_fiber(to.race_detector, __tsan_switch_to_fiber_no_sync);
#endif
  optima_cuda_switch(&from.stack_pointer, to.stack_pointer);
}

// On the new stack, which `to` is; `from` gets to know where its own lies.
void arrive(const Context& to, Context& from) {
#ifdef CE_ASAN
  __sanitizer_finish_switch_fiber(to.shadow_stack, &from.stack, &from.stack_bytes);
#else
  (void)to;
  (void)from;
#endif
}

}  // namespace

Fiber::Fiber(Body body, void* argument) : body_(body), argument_(argument) {
  void* mapping = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  mprotect(mapping, kGuardBytes, PROT_NONE);
  stack_ = static_cast<char*>(mapping) + kGuardBytes;
  own_.stack = stack_;
  own_.stack_bytes = kStackBytes;
  prepare();
}

Fiber::~Fiber() {
#ifdef OPTIMA_TSAN
  if (own_.race_detector != nullptr) __tsan_destroy_fiber(own_.race_detector);
#endif
#ifdef CE_ASAN
  if (stack_ != nullptr) __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  if (mapping_ != nullptr) munmap(mapping_, kGuardBytes + kStackBytes);
}

void Fiber::prepare() {
  own_.stack_pointer = first_frame(stack_ + kStackBytes, this);
  own_.shadow_stack = nullptr;
#ifdef OPTIMA_TSAN
  own_.race_detector = __tsan_create_fiber(0);
#endif
}

void Fiber::restart() {
#ifdef OPTIMA_TSAN
  __tsan_destroy_fiber(own_.race_detector);
#endif
#ifdef CE_ASAN
  __asan_unpoison_memory_region(stack_, kStackBytes);  // of frames that were never left
#endif
  prepare();
}

void Fiber::resume() {
#ifdef OPTIMA_TSAN
  resumer_.race_detector = __tsan_get_current_fiber();
#endif
  leave(resumer_, own_);
  arrive(resumer_, own_);
}

void Fiber::suspend() {
  leave(own_, resumer_);
  arrive(own_, resumer_);
}

void Fiber::loop() {
  arrive(own_, resumer_);
  for (;;) {
    body_(argument_);
    suspend();
  }
}

void race_release(void* object) {
#ifdef OPTIMA_TSAN
  __tsan_release(object);
#else
  (void)object;
#endif
}

void race_acquire(void* object) {
#ifdef OPTIMA_TSAN
  __tsan_acquire(object);
#else
  (void)object;
#endif
}

RaceSilence::RaceSilence() {
#ifdef OPTIMA_TSAN
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}

RaceSilence::~RaceSilence() {
#ifdef OPTIMA_TSAN
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

}  // namespace optima::cuda_host

void optima_cuda_begin(optima::cuda_host::Fiber* fiber) {
  fiber->loop();
}
