// Reads the auxiliary vector that the kernel hands to every process.
#include "base/cpu_words.h"

#include <sys/auxv.h>

namespace optima {

CpuWords cpu_words() {
  return {.hwcap = ::getauxval(AT_HWCAP), .hwcap2 = ::getauxval(AT_HWCAP2)};
}

}  // namespace optima
