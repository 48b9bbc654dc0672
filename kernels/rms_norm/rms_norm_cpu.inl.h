// The norm over the words of kernels/vec/f32_*.h and f64_*.h. Squares are summed in double: the
// conversions hide behind the loads, and no width or scale of activations can then overflow or lose
// the sum.
#pragma once

#include <math.h>

#include "kernels/rms_norm/rms_norm.h"

namespace optima::kernels {
namespace {

template <typename D>
double sum_of_squares(const float* x, int64_t width) {
  typename D::Reg sums[4] = {D::zero(), D::zero(), D::zero(), D::zero()};
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (int part = 0; part < 4; ++part) {
      const typename D::Reg value = D::load(x + i + part * 4);
      sums[part] = D::fma(value, value, sums[part]);
    }
  }
  double sum = D::sum(D::add(D::add(sums[0], sums[1]), D::add(sums[2], sums[3])));
  for (; i < width; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

template <typename V>
void scale_row(const RmsNormArgs& args, const float* x, float factor, float* out) {
  const typename V::Reg factors = V::set1(factor);
  int64_t i = 0;
  if (args.weight == nullptr) {
    for (; i + 8 <= args.width; i += 8) V::store(out + i, V::mul(V::load(x + i), factors));
    for (; i < args.width; ++i) out[i] = x[i] * factor;
    return;
  }
  for (; i + 8 <= args.width; i += 8) {
    const typename V::Reg scaled = V::mul(V::load(x + i), factors);
    V::store(out + i, V::mul(scaled, V::load(args.weight + i)));
  }
  for (; i < args.width; ++i) out[i] = x[i] * factor * args.weight[i];
}

template <typename V, typename D>
void rms_norm_rows(const RmsNormArgs& args, int64_t row_begin, int64_t row_end) {
  static_assert(V::kWidth == 8 && D::kWidth == 4);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    const double mean = sum_of_squares<D>(x, args.width) / static_cast<double>(args.width);
    const double root = sqrt(mean + static_cast<double>(args.epsilon));
    scale_row<V>(args, x, static_cast<float>(1.0 / root), args.out + row * args.out_stride);
  }
}

}  // namespace
}  // namespace optima::kernels
