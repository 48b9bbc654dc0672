// The definition of the norm in plain loops; sums in double, one rounding at the end.
#include <math.h>

#include "kernels/rms_norm/rms_norm.h"

namespace optima::kernels {
void rms_norm_ref(const RmsNormArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* out = args.out + row * args.out_stride;
    double squares = 0;
    for (int64_t i = 0; i < args.width; ++i) squares += static_cast<double>(x[i]) * x[i];
    const double mean = squares / static_cast<double>(args.width);
    const double inverse = 1.0 / sqrt(mean + static_cast<double>(args.epsilon));
    for (int64_t i = 0; i < args.width; ++i) {
      const double weight = args.weight == nullptr ? 1.0 : static_cast<double>(args.weight[i]);
      out[i] = static_cast<float>(x[i] * inverse * weight);
    }
  }
}

const RmsNormFn kRmsNormReference = rms_norm_ref;

}  // namespace optima::kernels
