// Brings together what the operating system says and what the kernels make of it.
#include "backend/cpu/host_isa.h"

#include "base/cpu_words.h"

namespace optima::backend::cpu {

kernels::IsaMask host_isa() {
  const CpuWords words = cpu_words();
  return kernels::detect_isa({words.hwcap, words.hwcap2, words.states});
}

}  // namespace optima::backend::cpu
