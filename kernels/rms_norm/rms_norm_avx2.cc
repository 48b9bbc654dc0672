// The norm for AVX2. Squares are summed in double: the conversions hide behind the loads, and no
// width or scale of activations can then overflow or lose the sum.
#include <immintrin.h>
#include <math.h>

#include "kernels/rms_norm/rms_norm.h"

namespace optima::kernels::avx2 {
namespace {

double sum_of_squares(const float* x, int64_t width) {
  __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                     _mm256_setzero_pd()};
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (int part = 0; part < 4; ++part) {
      const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(x + i + part * 4));
      sums[part] = _mm256_fmadd_pd(value, value, sums[part]);
    }
  }
  const __m256d all =
      _mm256_add_pd(_mm256_add_pd(sums[0], sums[1]), _mm256_add_pd(sums[2], sums[3]));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
  double sum = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  for (; i < width; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void scale_row(const RmsNormArgs& args, const float* x, float factor, float* out) {
  const __m256 factors = _mm256_set1_ps(factor);
  int64_t i = 0;
  if (args.weight == nullptr) {
    for (; i + 8 <= args.width; i += 8) {
      _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factors));
    }
    for (; i < args.width; ++i) out[i] = x[i] * factor;
    return;
  }
  for (; i + 8 <= args.width; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), factors);
    _mm256_storeu_ps(out + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(args.weight + i)));
  }
  for (; i < args.width; ++i) out[i] = x[i] * factor * args.weight[i];
}

}  // namespace

void rms_norm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    const double mean = sum_of_squares(x, args.width) / static_cast<double>(args.width);
    const double root = sqrt(mean + static_cast<double>(args.epsilon));
    scale_row(args, x, static_cast<float>(1.0 / root), args.out + row * args.out_stride);
  }
}

}  // namespace optima::kernels::avx2
