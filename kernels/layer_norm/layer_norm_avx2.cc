// The norm for AVX2. Sums and distances from the mean are in double: where the mean is large
// against the spread, its subtraction in fp32 would lose what the norm is to keep.
#include <immintrin.h>
#include <math.h>

#include "kernels/layer_norm/layer_norm.h"

namespace optima::kernels::avx2 {
namespace {

// Σ function(x[i]) in double, sixteen values a step.
template <typename VectorFunction, typename ScalarFunction>
double sum_of(const float* x, int64_t width, const VectorFunction& wide,
              const ScalarFunction& narrow) {
  __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                     _mm256_setzero_pd()};
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (int part = 0; part < 4; ++part) {
      const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(x + i + part * 4));
      sums[part] = _mm256_add_pd(sums[part], wide(value));
    }
  }
  const __m256d all =
      _mm256_add_pd(_mm256_add_pd(sums[0], sums[1]), _mm256_add_pd(sums[2], sums[3]));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
  double sum = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  for (; i < width; ++i) sum += narrow(static_cast<double>(x[i]));
  return sum;
}

double mean_of(const float* x, int64_t width) {
  const double sum = sum_of(
      x, width, [](__m256d value) { return value; }, [](double value) { return value; });
  return sum / static_cast<double>(width);
}

double variance_of(const float* x, int64_t width, double mean) {
  const __m256d means = _mm256_set1_pd(mean);
  const double squares = sum_of(
      x, width,
      [means](__m256d value) {
        const __m256d distance = _mm256_sub_pd(value, means);
        return _mm256_mul_pd(distance, distance);
      },
      [mean](double value) { return (value - mean) * (value - mean); });
  return squares / static_cast<double>(width);
}

// out = (x - mean) * inverse, rounded to fp32 once.
void normalise(const float* x, double mean, double inverse, float* out, int64_t width) {
  const __m256d means = _mm256_set1_pd(mean);
  const __m256d inverses = _mm256_set1_pd(inverse);
  int64_t i = 0;
  for (; i + 4 <= width; i += 4) {
    const __m256d distance = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(x + i)), means);
    _mm_storeu_ps(out + i, _mm256_cvtpd_ps(_mm256_mul_pd(distance, inverses)));
  }
  for (; i < width; ++i) {
    out[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse);
  }
}

void multiply(const float* weight, float* out, int64_t width) {
  int64_t i = 0;
  for (; i + 8 <= width; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(out + i), _mm256_loadu_ps(weight + i)));
  }
  for (; i < width; ++i) out[i] *= weight[i];
}

void add(const float* bias, float* out, int64_t width) {
  int64_t i = 0;
  for (; i + 8 <= width; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_loadu_ps(out + i), _mm256_loadu_ps(bias + i)));
  }
  for (; i < width; ++i) out[i] += bias[i];
}

}  // namespace

void layer_norm(const LayerNormArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* out = args.out + row * args.out_stride;
    const double mean = mean_of(x, args.width);
    const double variance = variance_of(x, args.width, mean);
    normalise(x, mean, 1.0 / sqrt(variance + static_cast<double>(args.epsilon)), out, args.width);
    if (args.weight != nullptr) multiply(args.weight, out, args.width);
    if (args.bias != nullptr) add(args.bias, out, args.width);
  }
}

}  // namespace optima::kernels::avx2
