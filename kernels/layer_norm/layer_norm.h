// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias, row by row; the variance is
// the mean square about the mean (Ba, Kiros & Hinton 2016, arXiv:1607.06450).
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

struct LayerNormArgs {
  const float* x;  // [rows, width], row stride x_stride floats
  int64_t x_stride;
  const float* weight;  // [width]; null = all ones
  const float* bias;    // [width]; null = all zeros
  float* out;           // [rows, width], row stride out_stride; may equal x
  int64_t out_stride;
  int64_t width;
  float epsilon;
};

using LayerNormFn = void (*)(const LayerNormArgs& args, int64_t row_begin, int64_t row_end);
Variants<LayerNormFn> layer_norm_variants();
extern const LayerNormFn kLayerNormReference;  // double throughout, one rounding at the end

}  // namespace optima::kernels
