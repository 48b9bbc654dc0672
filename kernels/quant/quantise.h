// fp32 weights -> a smaller type.
#pragma once

#include <stdint.h>

#include "kernels/quant/weight_type.h"

namespace optima::kernels {

// Quantises `values` weights of one row (a multiple of 32 where the type has blocks), as ggml's
// reference does: the same bits.
//   Q8_0  scale = largest magnitude / 127
//   Q4_0  scale = value of the largest magnitude / -8, so that this value is exact
//   F16, BF16  to nearest, ties to even; F16 beyond 65504 becomes infinity
// A NaN or infinity makes its block NaN or zero, as the arithmetic has it.
using QuantiseRowFn = void (*)(const float* row, void* out, int64_t values);
// Null for a type that is not written (all but these).
QuantiseRowFn quantise_row(WeightType type);

}  // namespace optima::kernels
