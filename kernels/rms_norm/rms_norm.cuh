// The norm of rms_norm.h on a GPU, with the addition that comes before it in a layer:
//
//   sum = residual + x, rounded to T and stored as the new residual (no residual: sum = x)
//   out = sum / sqrt(mean(sum^2) + epsilon) * weight
//
// What is normed is what was stored, so that the fused form and the two steps agree. Sums are fp32,
// so a square must not overflow: |sum| < 1e18.
#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/ce.h"
#include "kernels/cuda/residual_row.cuh"

namespace optima::kernels::cuda {

template <typename T>
struct RmsNormArgs {
  ResidualRows<T> in;
  const float* weight;  // [width]; null = all ones
  T* out;               // [rows, width], row stride out_stride; may equal in.x
  int64_t out_stride;
  int64_t rows;
  int width;
  float epsilon;
};

// A block of kThreads takes a row, N values a step. What a thread reads the second time is what it
// has written itself.
template <typename T, int kThreads, int N>
CE_GLOBAL(kThreads)
rms_norm_kernel(RmsNormArgs<T> args) {
  const ResidualRow<T> row = row_of(args.in, ce::block_x());
  float squares = 0;
  for (int at = ce::thread_x() * N; at < args.width; at += kThreads * N) {
    const ce::Pack<T, N> sum = add_residual<T, N>(row, at);
    for (int i = 0; i < N; ++i) squares += ce::to_float(sum.v[i]) * ce::to_float(sum.v[i]);
  }
  squares = block_sum<kThreads>(squares);
  const float inverse = ce::rsqrt(squares / static_cast<float>(args.width) + args.epsilon);
  T* out = args.out + ce::block_x() * args.out_stride;
  for (int at = ce::thread_x() * N; at < args.width; at += kThreads * N) {
    ce::Pack<T, N> values = ce::load<T, N>(row.sum() + at);
    for (int i = 0; i < N; ++i) {
      const float weight = args.weight == nullptr ? 1.0f : args.weight[at + i];
      values.v[i] = ce::from_float<T>(ce::to_float(values.v[i]) * inverse * weight);
    }
    ce::store(out + at, values);
  }
}

template <typename T, int kThreads>
ce::Status launch_rms_norm(const RmsNormArgs<T>& args, ce::Stream stream) {
  const bool wide = args.width % ce::kWidest<T> == 0 && rows_are_wide(args.in) &&
                    rows_are_wide(static_cast<const T*>(args.out), args.out_stride);
  const ce::Launch config = {"rms_norm", {static_cast<int>(args.rows)}, kThreads, 0, stream};
  return wide ? ce::launch(rms_norm_kernel<T, kThreads, ce::kWidest<T>>, config, args)
              : ce::launch(rms_norm_kernel<T, kThreads, 1>, config, args);
}

template <typename T>
ce::Status rms_norm(const RmsNormArgs<T>& args, ce::Stream stream) {
  if (args.rows == 0) return {};
  return args.width <= kWarpRowMax ? launch_rms_norm<T, ce::kWarp>(args, stream)
                                   : launch_rms_norm<T, kRowThreads>(args, stream);
}

}  // namespace optima::kernels::cuda
