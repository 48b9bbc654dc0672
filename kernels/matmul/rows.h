// Declarations shared by the variants of this folder and their arrays (variants.cc).
#pragma once

#include "kernels/matmul/matmul.h"

namespace optima::kernels {

namespace baseline {
void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out);
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
}  // namespace baseline

}  // namespace optima::kernels
