// What the operating system says of the CPU.
#pragma once

#include <cstdint>

namespace optima {

// The words AT_HWCAP and AT_HWCAP2 of the process; 0 where the system has none.
struct CpuWords {
  uint64_t hwcap = 0;
  uint64_t hwcap2 = 0;
};
CpuWords cpu_words();

}  // namespace optima
