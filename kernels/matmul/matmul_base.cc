// The variant for any CPU, and the reference. Both dequantise a stretch of a weight row on the
// stack; the reference multiplies it by the fp32 activations in double, the variant by the
// quantised ones in fp32.

#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

constexpr int64_t kStretch = 256;  // a multiple of every type's block

// Stretches of weight row `row`: calls body(first k, weights, count) with dequantised weights.
template <typename Body>
void for_each_stretch(const MatmulArgs& args, int64_t row, const Body& body) {
  const WeightTypeInfo& info = *find_weight_type(static_cast<int32_t>(args.type));
  const DequantRowFn dequant = dequant_row(args.type);
  const auto* weights = static_cast<const unsigned char*>(args.weights) +
                        static_cast<size_t>(row) * row_bytes(info, args.k);
  float values[kStretch];
  for (int64_t k = 0; k < args.k; k += kStretch) {
    const int64_t count = args.k - k < kStretch ? args.k - k : kStretch;
    dequant(weights + row_bytes(info, k), values, count);
    body(k, values, count);
  }
}

float dot(const float* a, const float* b, int64_t count) {
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Weights of [k, k + count) times the quantised activations of row m.
float dot_quantised(const MatmulArgs& args, int64_t m, int64_t k, const float* weights,
                    int64_t count) {
  const QuantisedRows& x = args.xq;
  float sum = 0.0f;
  for (int64_t i = 0; i < count; i += kActivationBlock) {
    const int64_t at = m * x.k_padded + k + i;
    const int8_t* q = x.q + at;
    float codes[kActivationBlock];
    for (int64_t j = 0; j < kActivationBlock; ++j) codes[j] = static_cast<float>(q[j]);
    sum += x.scale[at / kActivationBlock] * dot(weights + i, codes, kActivationBlock);
  }
  return sum;
}

// Σ a b in double, in eight lanes so that the additions do not wait for each other.
double dot_double(const float* a, const float* b, int64_t count) {
  double sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      sum[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (; i < count; ++i) sum[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void run_reference(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  constexpr int64_t kRows = 32;  // share one dequantisation
  for (int64_t n = n_begin; n < n_end; ++n) {
    for (int64_t m = 0; m < args.m; m += kRows) {
      const int64_t rows = args.m - m < kRows ? args.m - m : kRows;
      double sum[kRows] = {};
      for_each_stretch(args, n, [&](int64_t k, const float* weights, int64_t count) {
        for (int64_t i = 0; i < rows; ++i) {
          sum[i] += dot_double(weights, args.x + (m + i) * args.k + k, count);
        }
      });
      for (int64_t i = 0; i < rows; ++i) {
        args.out[(m + i) * args.out_stride + n] = static_cast<float>(sum[i]);
      }
    }
  }
}

}  // namespace

namespace baseline {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  const bool quantised = uses_quantised_activations(args.type);
  for (int64_t n = n_begin; n < n_end; ++n) {
    float* out = args.out + n;
    for (int64_t m = 0; m < args.m; ++m) out[m * args.out_stride] = 0.0f;
    for_each_stretch(args, n, [&](int64_t k, const float* weights, int64_t count) {
      for (int64_t m = 0; m < args.m; ++m) {
        out[m * args.out_stride] += quantised ? dot_quantised(args, m, k, weights, count)
                                              : dot(weights, args.x + m * args.k + k, count);
      }
    });
  }
}

}  // namespace baseline

const MatmulKernel kMatmulReference = {run_reference, nullptr, 1, nullptr, nullptr};

}  // namespace optima::kernels
