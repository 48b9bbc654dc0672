// Reads the auxiliary vector that the kernel hands to every process.
#include "base/cpu_words.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace optima {
namespace {

#if defined(__x86_64__)
uint64_t permitted_states() {
  // Of Linux's asm/prctl.h, which Debian 12's C library does not repeat.
  constexpr int kGetPermitted = 0x1022;
  constexpr int kRequestPermission = 0x1023;
  constexpr int kTileData = 18;
  uint64_t states = 0;
  ::syscall(SYS_arch_prctl, kRequestPermission, kTileData);
  if (::syscall(SYS_arch_prctl, kGetPermitted, &states) != 0) return 0;
  return states;
}
#else
uint64_t permitted_states() {
  return 0;
}
#endif

}  // namespace

CpuWords cpu_words() {
  return {.hwcap = ::getauxval(AT_HWCAP),
          .hwcap2 = ::getauxval(AT_HWCAP2),
          .states = permitted_states()};
}

}  // namespace optima
