// The matrix products of AVX2 with VNNI, the one instruction that AVX2 lacks replaced by four of
// its own. This file is compiled for AVX2, so it includes nothing that others share.
#include "tests/kernels/simulation.h"

#if defined(__AVX2__)
#include "kernels/vec/avx_vnni.h"
#include "tests/kernels/vnni_simulation.inl.h"
#endif

namespace optima::kernels {

Variants<MatmulKernel> simulations_avx2() {
#if defined(__AVX2__)
  static constexpr Variant<MatmulKernel> kRow =
      simulated_row<AvxVnniVector<WidenedDot>>("matmul_simavxvnni", kIsaAvx2, 16);
  return {&kRow, 1};
#else
  return {nullptr, 0};
#endif
}

}  // namespace optima::kernels
