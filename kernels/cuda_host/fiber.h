// A fiber: a stack of its own on which a function runs until it suspends itself. CUDA threads are
// fibers here, one per thread of a block, used again for block after block.
//
// Switching saves the registers that a call preserves and nothing else (no system call, unlike
// ucontext's). AddressSanitizer and ThreadSanitizer are told of each switch; a switch orders
// nothing for the latter: what orders two CUDA threads is said where they meet (block.cc).
#pragma once

#include <stddef.h>

namespace optima::cuda_host {

// Where a stack was left, and what sanitizers know it by.
struct Context {
  void* stack_pointer = nullptr;
  const void* stack = nullptr;  // lowest address
  size_t stack_bytes = 0;
  void* shadow_stack = nullptr;   // AddressSanitizer's
  void* race_detector = nullptr;  // ThreadSanitizer's
};

class Fiber {
 public:
  using Body = void (*)(void* argument);

  // Stacks come from the operating system with a page below that faults.
  Fiber(Body body, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  // False: there was no memory for the stack.
  bool valid() const { return stack_ != nullptr; }

  // Runs the fiber until it suspends itself. A body that returned has suspended itself, and begins
  // anew the next time.
  void resume();
  // Called on the fiber: goes back to who resumed it.
  void suspend();
  // Forgets where the body was: it begins anew. For bodies that will never go on. Not called on
  // the fiber.
  void restart();

  // The loop around the body; called by the code that a new stack begins with.
  [[noreturn]] void loop();

 private:
  void prepare();

  Body body_;
  void* argument_;
  void* mapping_ = nullptr;
  char* stack_ = nullptr;
  Context own_;
  Context resumer_;
};

// What ThreadSanitizer is told; nothing in other builds. release() by one thread and acquire() by
// another, of the same object, order what came before the one and after the other.
void race_release(void* object);
void race_acquire(void* object);
// While one lives, its thread's accesses and allocations are the shim's own business.
class RaceSilence {
 public:
  RaceSilence();
  ~RaceSilence();
  RaceSilence(const RaceSilence&) = delete;
  RaceSilence& operator=(const RaceSilence&) = delete;
};

}  // namespace optima::cuda_host
