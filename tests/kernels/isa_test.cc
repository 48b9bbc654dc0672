// CPU detection against the compiler's own.

#include "kernels/isa.h"

#include <gtest/gtest.h>

#include <string>

namespace optima::kernels {
namespace {

TEST(Isa, AgreesWithTheCompilersDetection) {
  const IsaMask mask = detect_isa();
#if defined(__x86_64__)
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
#else
  EXPECT_EQ(mask, kIsaNone);
#endif
}

TEST(Isa, NamesAreDistinct) {
  EXPECT_STREQ(isa_name(kIsaNone), "baseline");
  EXPECT_STREQ(isa_name(kIsaAvx2), "avx2");
  EXPECT_STREQ(isa_name(kIsaAvx512), "avx512");
  EXPECT_STREQ(isa_name(kIsaAvx512Vnni), "avx512vnni");
  EXPECT_STREQ(isa_name(kIsaAvx512Bf16), "avx512bf16");
  EXPECT_STREQ(isa_name(kIsaAvxVnni), "avxvnni");
}

}  // namespace
}  // namespace optima::kernels
