// Kernels for VNNI whose one instruction is simulated, so that lesser CPUs run them. The arrays are
// empty on other architectures.
#pragma once

#include "kernels/matmul/matmul.h"

namespace optima::kernels {

Variants<MatmulKernel> vnni_simulations_avx2();
Variants<MatmulKernel> vnni_simulations_avx512();

}  // namespace optima::kernels
