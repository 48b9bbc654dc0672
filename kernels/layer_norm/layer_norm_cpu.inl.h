// The norm over the words of kernels/vec/f32_*.h and f64_*.h. Sums and distances from the mean are
// in double: where the mean is large against the spread, its subtraction in fp32 would lose what
// the norm is to keep.
#pragma once

#include <math.h>

#include "kernels/layer_norm/layer_norm.h"

namespace optima::kernels {
namespace {

// Σ function(x[i]) in double, sixteen values a step.
template <typename D, typename VectorFunction, typename ScalarFunction>
double sum_of(const float* x, int64_t width, const VectorFunction& wide,
              const ScalarFunction& narrow) {
  typename D::Reg sums[4] = {D::zero(), D::zero(), D::zero(), D::zero()};
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (int part = 0; part < 4; ++part) {
      sums[part] = D::add(sums[part], wide(D::load(x + i + part * 4)));
    }
  }
  double sum = D::sum(D::add(D::add(sums[0], sums[1]), D::add(sums[2], sums[3])));
  for (; i < width; ++i) sum += narrow(static_cast<double>(x[i]));
  return sum;
}

template <typename D>
double mean_of(const float* x, int64_t width) {
  using Reg = typename D::Reg;
  const double sum = sum_of<D>(
      x, width, [](Reg value) { return value; }, [](double value) { return value; });
  return sum / static_cast<double>(width);
}

template <typename D>
double variance_of(const float* x, int64_t width, double mean) {
  using Reg = typename D::Reg;
  const Reg means = D::set1(mean);
  const double squares = sum_of<D>(
      x, width,
      [means](Reg value) {
        const Reg distance = D::sub(value, means);
        return D::mul(distance, distance);
      },
      [mean](double value) { return (value - mean) * (value - mean); });
  return squares / static_cast<double>(width);
}

// out = (x - mean) * inverse, rounded to fp32 once.
template <typename D>
void normalise(const float* x, double mean, double inverse, float* out, int64_t width) {
  const typename D::Reg means = D::set1(mean);
  const typename D::Reg inverses = D::set1(inverse);
  int64_t i = 0;
  for (; i + 4 <= width; i += 4) {
    D::store(out + i, D::mul(D::sub(D::load(x + i), means), inverses));
  }
  for (; i < width; ++i) {
    out[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse);
  }
}

template <typename V>
void multiply(const float* weight, float* out, int64_t width) {
  int64_t i = 0;
  for (; i + 8 <= width; i += 8) {
    V::store(out + i, V::mul(V::load(out + i), V::load(weight + i)));
  }
  for (; i < width; ++i) out[i] *= weight[i];
}

template <typename V>
void add(const float* bias, float* out, int64_t width) {
  int64_t i = 0;
  for (; i + 8 <= width; i += 8) {
    V::store(out + i, V::add(V::load(out + i), V::load(bias + i)));
  }
  for (; i < width; ++i) out[i] += bias[i];
}

template <typename V, typename D>
void layer_norm_rows(const LayerNormArgs& args, int64_t row_begin, int64_t row_end) {
  static_assert(V::kWidth == 8 && D::kWidth == 4);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* out = args.out + row * args.out_stride;
    const double mean = mean_of<D>(x, args.width);
    const double variance = variance_of<D>(x, args.width, mean);
    const double inverse = 1.0 / sqrt(variance + static_cast<double>(args.epsilon));
    normalise<D>(x, mean, inverse, out, args.width);
    if (args.weight != nullptr) multiply<V>(args.weight, out, args.width);
    if (args.bias != nullptr) add<V>(args.bias, out, args.width);
  }
}

}  // namespace
}  // namespace optima::kernels
