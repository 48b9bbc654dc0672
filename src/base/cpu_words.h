// What the operating system says of the CPU.
#pragma once

#include <cstdint>

namespace optima {

struct CpuWords {
  uint64_t hwcap = 0;  // AT_HWCAP and AT_HWCAP2 of the process; 0 where the system has none
  uint64_t hwcap2 = 0;
  uint64_t states = 0;  // x86: the bits of XCR0 whose registers the process may use
};

// Asks for the tiles of AMX first, which Linux gives to a process that wants them (its document
// "Using XSTATE features in user space applications"). What that changes for the process: a thread
// that uses tiles has signal frames larger by 8 KB from then on, and sigaltstack() refuses stacks
// that could not hold one. Where a thread has such a stack already the system says no, and tiles
// are not among the states.
CpuWords cpu_words();

}  // namespace optima
