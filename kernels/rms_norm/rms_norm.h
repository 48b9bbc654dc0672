// out = x / sqrt(mean(x^2) + epsilon) * weight, row by row (Zhang & Sennrich 2019,
// arXiv:1910.07467).
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

struct RmsNormArgs {
  const float* x;  // [rows, width], row stride x_stride floats; rows of a head norm are heads
  int64_t x_stride;
  const float* weight;  // [width]; null = all ones
  float* out;           // [rows, width], row stride out_stride; may equal x
  int64_t out_stride;
  int64_t width;
  float epsilon;
};

using RmsNormFn = void (*)(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
Variants<RmsNormFn> rms_norm_variants();
extern const RmsNormFn kRmsNormReference;  // double accumulation

}  // namespace optima::kernels
