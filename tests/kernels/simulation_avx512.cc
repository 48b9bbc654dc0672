// The matrix products of AVX-512, the instruction of VNNI replaced by others of AVX-512 BW, those
// of BF16 by plain loops: for CPUs without them, an emulated one among them (tests/long/avx512.sh).
// This file is compiled for AVX-512, so it includes nothing that others share.
#include "tests/kernels/simulation.h"

#if defined(__AVX512BW__)
#include "kernels/vec/avx512.h"
#include "tests/kernels/bf16_simulation.inl.h"
#include "tests/kernels/vnni_simulation.inl.h"

namespace optima::kernels {
namespace {

struct WidenedDot512 : WidenedDot {
  using WidenedDot::add;
  static __m512i add(__m512i sum, __m512i u, __m512i a) {
    __m256i halves[3][2];
    memcpy(halves[0], &sum, sizeof sum);
    memcpy(halves[1], &u, sizeof u);
    memcpy(halves[2], &a, sizeof a);
    for (int i = 0; i < 2; ++i) halves[0][i] = add(halves[0][i], halves[1][i], halves[2][i]);
    memcpy(&sum, halves[0], sizeof sum);
    return sum;
  }
};

}  // namespace
}  // namespace optima::kernels
#endif

namespace optima::kernels {

Variants<MatmulKernel> simulations_avx512() {
#if defined(__AVX512BW__)
  static constexpr Variant<MatmulKernel> kRow =
      simulated_row<Avx512Vector<WidenedDot512>>("matmul_simavx512vnni", kIsaAvx2 | kIsaAvx512, 32);
  return {&kRow, 1};
#else
  return {nullptr, 0};
#endif
}

Variants<MatmulKernel> bf16_simulations_avx512() {
#if defined(__AVX512BW__)
  using V = Avx512Vector<WidenedDot512>;
  static constexpr Variant<MatmulKernel> kRow = {
      "matmul_simavx512bf16",
      kIsaAvx2 | kIsaAvx512,
      {run_bf16<V, run<V>>, scratch_bytes, 32, nullptr, nullptr}};
  return {&kRow, 1};
#else
  return {nullptr, 0};
#endif
}

}  // namespace optima::kernels
