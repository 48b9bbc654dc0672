// CPU detection against the compiler's own, and on Arm against the CPU's own registers.

#include "kernels/isa.h"

#include <gtest/gtest.h>

#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

#if defined(__x86_64__)

TEST(Isa, AgreesWithTheCompilersDetection) {
  const IsaMask mask = host_isa();
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  EXPECT_EQ((mask & kIsaAvx2) != 0, avx2);
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  EXPECT_EQ((mask & kIsaAvx512) != 0, avx512);
  const bool vnni =
      avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
  EXPECT_EQ((mask & kIsaAvx512Vnni) != 0, vnni);
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  EXPECT_EQ((mask & kIsaAvx512Bf16) != 0, bf16);
  EXPECT_EQ((mask & kIsaFastBf16) != 0, bf16 && __builtin_cpu_is("amd"));
  const bool tiles =
      vnni && bf16 && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16");
  EXPECT_TRUE(tiles || (mask & kIsaAmx) == 0);
}

// The CPU's tiles count where the system has permitted them, and other instruction sets without.
TEST(Isa, TilesArePermitted) {
  const IsaMask mask = host_isa();
  constexpr uint64_t kTileData = 1u << 18;
  EXPECT_EQ(detect_isa({0, 0, 0}), mask & ~kIsaAmx);
  EXPECT_EQ(detect_isa({0, 0, ~uint64_t{0} & ~kTileData}), mask & ~kIsaAmx);
  EXPECT_EQ(detect_isa({0, 0, ~uint64_t{0}}) & ~kIsaAmx, mask & ~kIsaAmx);
}

#elif defined(__aarch64__)

// Linux lets every process read the fields of the identification registers that its words tell of.
TEST(Isa, AgreesWithTheIdentificationRegisters) {
  uint64_t pfr0 = 0;
  uint64_t isar0 = 0;
  uint64_t isar1 = 0;
  __asm__("mrs %0, ID_AA64PFR0_EL1" : "=r"(pfr0));
  __asm__("mrs %0, ID_AA64ISAR0_EL1" : "=r"(isar0));
  __asm__("mrs %0, ID_AA64ISAR1_EL1" : "=r"(isar1));
  const auto field = [](uint64_t word, int bit) { return word >> bit & 15u; };
  const IsaMask mask = host_isa();
  EXPECT_EQ((mask & kIsaNeon) != 0, field(pfr0, 20) != 15);
  EXPECT_EQ((mask & kIsaNeonDot) != 0, field(isar0, 44) != 0);
  EXPECT_EQ((mask & kIsaNeonI8mm) != 0, field(isar1, 52) != 0);
}

#endif

// The words as Linux has them on a Cortex-A72, a Neoverse N1 and a Neoverse V1 (arm64
// elf_hwcaps.rst): fp asimd evtstrm aes pmull sha1 sha2 crc32; more with asimddp; more with i8mm.
TEST(Isa, OfArmsWords) {
  EXPECT_EQ(isa_of_arm(0, 0), kIsaNone);
  EXPECT_EQ(isa_of_arm(0xff, 0), kIsaNeon);
  EXPECT_EQ(isa_of_arm(0x00100000 | 0xff, 0), kIsaNeon | kIsaNeonDot);
  EXPECT_EQ(isa_of_arm(0x00100000 | 0xff, 0x2000), kIsaOfArm);
  EXPECT_EQ(isa_of_arm(0x00100000, 0x2000), kIsaNone);
}

TEST(Isa, NamesAreDistinct) {
  EXPECT_STREQ(isa_name(kIsaNone), "baseline");
  EXPECT_STREQ(isa_name(kIsaAvx2), "avx2");
  EXPECT_STREQ(isa_name(kIsaAvx512), "avx512");
  EXPECT_STREQ(isa_name(kIsaAvx512Vnni), "avx512vnni");
  EXPECT_STREQ(isa_name(kIsaAvx512Bf16), "avx512bf16");
  EXPECT_STREQ(isa_name(kIsaAvxVnni), "avxvnni");
  EXPECT_STREQ(isa_name(kIsaFastBf16), "fastbf16");
  EXPECT_STREQ(isa_name(kIsaAmx), "amx");
  EXPECT_STREQ(isa_name(kIsaNeon), "neon");
  EXPECT_STREQ(isa_name(kIsaNeonDot), "neondot");
  EXPECT_STREQ(isa_name(kIsaNeonI8mm), "neoni8mm");
}

}  // namespace
}  // namespace optima::kernels
