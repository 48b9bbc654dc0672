// The norm of layer_norm.h on a GPU, with the addition that comes before it in a layer:
//
//   sum = residual + x, rounded to T and stored as the new residual (no residual: sum = x)
//   out = (sum - mean) / sqrt(variance + epsilon) * weight + bias
//
// Three passes over the row, the later two from the cache: the variance is the mean square about
// the mean, not a difference of two large numbers. fp32 throughout; squares must not overflow.
#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/ce.h"
#include "kernels/cuda/residual_row.cuh"

namespace optima::kernels::cuda {

template <typename T>
struct LayerNormArgs {
  ResidualRows<T> in;
  const float* weight;  // [width]; null = all ones
  const float* bias;    // [width]; null = all zeros
  T* out;               // [rows, width], row stride out_stride; may equal in.x
  int64_t out_stride;
  int64_t rows;
  int width;
  float epsilon;
};

template <typename T, int kThreads, int N>
CE_GLOBAL(kThreads)
layer_norm_kernel(LayerNormArgs<T> args) {
  const ResidualRow<T> row = row_of(args.in, ce::block_x());
  const float width = static_cast<float>(args.width);
  float sum = 0;
  for (int at = ce::thread_x() * N; at < args.width; at += kThreads * N) {
    const ce::Pack<T, N> values = add_residual<T, N>(row, at);
    for (int i = 0; i < N; ++i) sum += ce::to_float(values.v[i]);
  }
  const float mean = block_sum<kThreads>(sum) / width;
  float squares = 0;
  for (int at = ce::thread_x() * N; at < args.width; at += kThreads * N) {
    const ce::Pack<T, N> values = ce::load<T, N>(row.sum() + at);
    for (int i = 0; i < N; ++i) {
      const float distance = ce::to_float(values.v[i]) - mean;
      squares += distance * distance;
    }
  }
  const float inverse = ce::rsqrt(block_sum<kThreads>(squares) / width + args.epsilon);
  T* out = args.out + ce::block_x() * args.out_stride;
  for (int at = ce::thread_x() * N; at < args.width; at += kThreads * N) {
    ce::Pack<T, N> values = ce::load<T, N>(row.sum() + at);
    for (int i = 0; i < N; ++i) {
      const float weight = args.weight == nullptr ? 1.0f : args.weight[at + i];
      const float bias = args.bias == nullptr ? 0.0f : args.bias[at + i];
      values.v[i] = ce::from_float<T>((ce::to_float(values.v[i]) - mean) * inverse * weight + bias);
    }
    ce::store(out + at, values);
  }
}

template <typename T, int kThreads>
ce::Status launch_layer_norm(const LayerNormArgs<T>& args, ce::Stream stream) {
  const bool wide = args.width % ce::kWidest<T> == 0 && rows_are_wide(args.in) &&
                    rows_are_wide(static_cast<const T*>(args.out), args.out_stride);
  const ce::Launch config = {"layer_norm", {static_cast<int>(args.rows)}, kThreads, 0, stream};
  return wide ? ce::launch(layer_norm_kernel<T, kThreads, ce::kWidest<T>>, config, args)
              : ce::launch(layer_norm_kernel<T, kThreads, 1>, config, args);
}

template <typename T>
ce::Status layer_norm(const LayerNormArgs<T>& args, ce::Stream stream) {
  if (args.rows == 0) return {};
  return args.width <= kWarpRowMax ? launch_layer_norm<T, ce::kWarp>(args, stream)
                                   : launch_layer_norm<T, kRowThreads>(args, stream);
}

}  // namespace optima::kernels::cuda
