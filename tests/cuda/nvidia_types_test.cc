// The host shim's fp16 and bf16 against NVIDIA's own, where CUDA's headers are on this machine (the
// build says so): the same values from all bits, the same bits from floats around every border of
// rounding. NaN need only stay NaN.
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <string.h>

#include <random>

#include "kernels/half.h"
#include "tests/cuda/shim_testing.h"

namespace optima::kernels::cuda {
namespace {

struct HalfPair {
  using Own = ce::Half;
  static float nvidia_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
  static uint16_t nvidia_bits(float value) { return __half_as_ushort(__float2half_rn(value)); }
};

struct Bf16Pair {
  using Own = ce::Bf16;
  static float nvidia_float(uint16_t bits) { return __bfloat162float(__ushort_as_bfloat16(bits)); }
  static uint16_t nvidia_bits(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

template <typename Pair>
class NvidiaTypes : public testing::Test {};
using Pairs = testing::Types<HalfPair, Bf16Pair>;
TYPED_TEST_SUITE(NvidiaTypes, Pairs);

TYPED_TEST(NvidiaTypes, SameValues) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto short_bits = static_cast<uint16_t>(bits);
    const float want = TypeParam::nvidia_float(short_bits);
    const float got = ce::to_float(typename TypeParam::Own{short_bits});
    ASSERT_EQ(isnan(got), isnan(want)) << bits;
    if (!isnan(want)) {
      ASSERT_EQ(float_bits(got), float_bits(want)) << bits;
    }
  }
}

template <typename Pair>
void expect_same_bits(float value) {
  const uint16_t got = ce::from_float<typename Pair::Own>(value).bits;
  const uint16_t want = Pair::nvidia_bits(value);
  if (isnan(value)) {
    ASSERT_TRUE(isnan(ce::to_float(typename Pair::Own{got})));
  } else {
    ASSERT_EQ(got, want) << value;
  }
}

TYPED_TEST(NvidiaTypes, SameRounding) {
  // Each value, the middle to its neighbour, and the floats beside both.
  for (int bits = 0; bits < 65535; ++bits) {
    const float low = TypeParam::nvidia_float(static_cast<uint16_t>(bits));
    const float high = TypeParam::nvidia_float(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    for (const float value : {low, middle}) {
      expect_same_bits<TypeParam>(value);
      expect_same_bits<TypeParam>(nextafterf(value, INFINITY));
      expect_same_bits<TypeParam>(nextafterf(value, -INFINITY));
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) expect_same_bits<TypeParam>(float_from_bits(random()));
}

}  // namespace
}  // namespace optima::kernels::cuda
#endif
