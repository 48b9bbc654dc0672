// The definition of the norm in plain loops; everything in double, one rounding at the end.
#include <math.h>

#include "kernels/layer_norm/layer_norm.h"

namespace optima::kernels {
namespace {

double mean_of(const float* x, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(x[i]);
  return sum / static_cast<double>(width);
}

double variance_of(const float* x, int64_t width, double mean) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    const double distance = static_cast<double>(x[i]) - mean;
    squares += distance * distance;
  }
  return squares / static_cast<double>(width);
}

}  // namespace

void layer_norm_ref(const LayerNormArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* out = args.out + row * args.out_stride;
    const double mean = mean_of(x, args.width);
    const double variance = variance_of(x, args.width, mean);
    const double inverse = 1.0 / sqrt(variance + static_cast<double>(args.epsilon));
    for (int64_t i = 0; i < args.width; ++i) {
      const double weight = args.weight == nullptr ? 1.0 : static_cast<double>(args.weight[i]);
      const double bias = args.bias == nullptr ? 0.0 : static_cast<double>(args.bias[i]);
      out[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse * weight + bias);
    }
  }
}

const LayerNormFn kLayerNormReference = layer_norm_ref;

}  // namespace optima::kernels
