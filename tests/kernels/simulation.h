// Matrix products whose instructions are simulated, all or one, so that lesser CPUs run them. The
// arrays are empty on other architectures.
#pragma once

#include "kernels/matmul/matmul.h"

namespace optima::kernels {

Variants<MatmulKernel> simulations_avx2();    // VNNI simulated
Variants<MatmulKernel> simulations_avx512();  // VNNI simulated
// AVX-512 BF16 simulated, the rest too or on AVX-512. Other types than BF16 are nothing new here.
Variants<MatmulKernel> bf16_simulations();
Variants<MatmulKernel> bf16_simulations_avx512();
// AVX-512 and AMX simulated, from five activation rows on arranged.
Variants<MatmulKernel> arranged_simulations();

}  // namespace optima::kernels
