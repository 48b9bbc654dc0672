// Which instruction sets this process may use. On x86: what the CPU has (CPUID) and whose registers
// the operating system saves on a context switch (XCR0). Both are needed; a kernel that trusts
// CPUID alone faults under an OS or hypervisor that masks the wide state. On Arm: what the
// operating system says, which has looked at both.

#include "kernels/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace optima::kernels {
namespace {

#if defined(__x86_64__)

struct Registers {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return Registers{};
  return r;
}

// XCR0, the register states that the OS saves. Written as bytes: the intrinsic needs -mxsave.
uint64_t saved_states() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

constexpr bool has(uint32_t word, uint32_t bits) {
  return (word & bits) == bits;
}

// "AuthenticAMD"
bool is_amd() {
  const Registers maker = cpuid(0, 0);
  return maker.ebx == 0x68747541 && maker.edx == 0x69746e65 && maker.ecx == 0x444d4163;
}

IsaMask detect_x86(uint64_t permitted) {
  constexpr uint32_t kFma = 1u << 12;
  constexpr uint32_t kOsxsave = 1u << 27;
  constexpr uint32_t kAvx = 1u << 28;
  constexpr uint32_t kF16c = 1u << 29;
  const Registers leaf1 = cpuid(1, 0);
  if (!has(leaf1.ecx, kFma | kOsxsave | kAvx | kF16c)) return kIsaNone;
  constexpr uint64_t kYmmState = 0x6;
  constexpr uint64_t kZmmState = 0xe6;
  const uint64_t states = saved_states();
  if ((states & kYmmState) != kYmmState) return kIsaNone;

  constexpr uint32_t kBmi1 = 1u << 3;
  constexpr uint32_t kAvx2 = 1u << 5;
  constexpr uint32_t kBmi2 = 1u << 8;
  const Registers leaf7 = cpuid(7, 0);
  if (!has(leaf7.ebx, kBmi1 | kAvx2 | kBmi2)) return kIsaNone;
  IsaMask mask = kIsaAvx2;

  const Registers leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : Registers{};
  constexpr uint32_t kAvxVnni = 1u << 4;
  if (has(leaf7_1.eax, kAvxVnni)) mask |= kIsaAvxVnni;

  constexpr uint32_t kF = 1u << 16;
  constexpr uint32_t kDq = 1u << 17;
  constexpr uint32_t kBw = 1u << 30;
  constexpr uint32_t kVl = 1u << 31;
  if ((states & kZmmState) != kZmmState || !has(leaf7.ebx, kF | kDq | kBw | kVl)) return mask;
  mask |= kIsaAvx512;
  constexpr uint32_t kVbmi = 1u << 1;
  constexpr uint32_t kVnni = 1u << 11;
  if (has(leaf7.ecx, kVbmi | kVnni)) mask |= kIsaAvx512Vnni;
  constexpr uint32_t kBf16 = 1u << 5;
  if (!has(leaf7_1.eax, kBf16)) return mask;
  mask |= kIsaAvx512Bf16 | (is_amd() ? kIsaFastBf16 : kIsaNone);
  constexpr uint32_t kAmxBf16 = 1u << 22;
  constexpr uint32_t kAmxTile = 1u << 24;
  constexpr uint64_t kTileStates = 0x60000;
  // Tiles are saved for those alone who have asked the system, so its word counts, too.
  if (has(leaf7.edx, kAmxBf16 | kAmxTile) && has(mask, kIsaAvx512Vnni) &&
      (states & permitted & kTileStates) == kTileStates) {
    mask |= kIsaAmx;
  }
  return mask;
}

#endif

}  // namespace

IsaMask isa_of_arm(uint64_t hwcap, uint64_t hwcap2) {
  // Bits of the two words as Linux has numbered them for arm64 (uapi/asm/hwcap.h).
  constexpr uint64_t kAsimd = 1u << 1;
  constexpr uint64_t kAsimdDp = 1u << 20;
  constexpr uint64_t kI8mm = 1u << 13;  // of the second
  if ((hwcap & kAsimd) == 0) return kIsaNone;
  IsaMask mask = kIsaNeon;
  if ((hwcap & kAsimdDp) != 0) mask |= kIsaNeonDot;
  if ((hwcap2 & kI8mm) != 0) mask |= kIsaNeonI8mm;
  return mask;
}

IsaMask detect_isa([[maybe_unused]] const SystemWords& words) {
#if defined(__x86_64__)
  return detect_x86(words.states);
#elif defined(__aarch64__)
  return isa_of_arm(words.hwcap, words.hwcap2);
#else
  return kIsaNone;
#endif
}

const char* isa_name(IsaMask single_bit) {
  switch (single_bit) {
    case kIsaAvx2:
      return "avx2";
    case kIsaAvx512:
      return "avx512";
    case kIsaAvx512Vnni:
      return "avx512vnni";
    case kIsaAvx512Bf16:
      return "avx512bf16";
    case kIsaAvxVnni:
      return "avxvnni";
    case kIsaFastBf16:
      return "fastbf16";
    case kIsaAmx:
      return "amx";
    case kIsaNeon:
      return "neon";
    case kIsaNeonDot:
      return "neondot";
    case kIsaNeonI8mm:
      return "neoni8mm";
    default:
      return "baseline";
  }
}

}  // namespace optima::kernels
