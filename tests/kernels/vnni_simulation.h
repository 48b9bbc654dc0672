// Kernels for tests that run code for VNNI on CPUs with AVX2. None on other architectures.
#pragma once

#include "kernels/matmul/matmul.h"

namespace optima::kernels {

Variants<MatmulKernel> vnni_simulations();

}  // namespace optima::kernels
