// The activations of elementwise.h on a GPU, plain and gated. fp32 inside, rounded once.
#pragma once

#include "kernels/cuda/ce.h"
#include "kernels/cuda/residual_row.cuh"
#include "kernels/elementwise/elementwise.h"

namespace optima::kernels::cuda {

template <typename T>
struct GatedActArgs {
  const T* gate;  // [rows, width], row stride in_stride values
  const T* up;    // the same
  int64_t in_stride;
  T* out;  // [rows, width], row stride out_stride; may equal gate or up
  int64_t out_stride;
  int64_t rows;
  int width;
  GateActParams params;
};

template <typename T>
struct ActArgs {
  const T* x;  // [count]
  T* out;      // [count]; may equal x
  int64_t count;
};

inline constexpr int kActThreads = 256;

// x σ(t).
CE_DEVICE float times_sigmoid(float x, float t) {
  return x / (1.0f + expf(-t));
}

CE_DEVICE float gelu_tanh(float x) {
  const float kSqrtTwoOverPi = 0.797884560802865f;
  return 0.5f * x * (1.0f + tanhf(kSqrtTwoOverPi * (x + 0.044715f * x * x * x)));
}

// By erfc, which keeps its digits far out on the negative side.
CE_DEVICE float gelu_erf(float x) {
  return 0.5f * x * erfcf(x * -0.707106781186547f);
}

// NaN passes the comparisons.
CE_DEVICE float relu(float x) {
  return x < 0 ? 0.0f : x;
}
CE_DEVICE float at_most(float x, float limit) {
  return x > limit ? limit : x;
}

template <Act kAct>
CE_DEVICE float activated(float x) {
  if constexpr (kAct == Act::silu) return times_sigmoid(x, x);
  if constexpr (kAct == Act::gelu_tanh) return gelu_tanh(x);
  if constexpr (kAct == Act::gelu_erf) return gelu_erf(x);
  if constexpr (kAct == Act::relu) return relu(x);
  if constexpr (kAct == Act::relu_squared) return relu(x) * relu(x);
  if constexpr (kAct == Act::gelu_quick) return times_sigmoid(x, 1.702f * x);
}

template <GateAct kAct>
CE_DEVICE float gated(float gate, float up, const GateActParams& params) {
  if constexpr (kAct == GateAct::silu) return activated<Act::silu>(gate) * up;
  if constexpr (kAct == GateAct::gelu_tanh) return activated<Act::gelu_tanh>(gate) * up;
  if constexpr (kAct == GateAct::gelu_erf) return activated<Act::gelu_erf>(gate) * up;
  if constexpr (kAct == GateAct::relu) return activated<Act::relu>(gate) * up;
  if constexpr (kAct == GateAct::swiglu_clamped) {
    const float g = at_most(gate, params.limit);
    const float below = at_most(up, params.limit);
    const float u = below < -params.limit ? -params.limit : below;
    return times_sigmoid(g, params.alpha * g) * (u + 1.0f);
  }
}

template <typename T, GateAct kAct, int N>
CE_GLOBAL(kActThreads)
gated_act_kernel(GatedActArgs<T> args) {
  const int64_t row = ce::block_x();
  const int step = ce::grid_y() * kActThreads * N;
  int at = (ce::block_y() * kActThreads + ce::thread_x()) * N;
  for (; at < args.width; at += step) {
    ce::Pack<T, N> gate = ce::load<T, N>(args.gate + row * args.in_stride + at);
    const ce::Pack<T, N> up = ce::load<T, N>(args.up + row * args.in_stride + at);
    for (int i = 0; i < N; ++i) {
      gate.v[i] = ce::from_float<T>(
          gated<kAct>(ce::to_float(gate.v[i]), ce::to_float(up.v[i]), args.params));
    }
    ce::store(args.out + row * args.out_stride + at, gate);
  }
}

template <typename T, Act kAct, int N>
CE_GLOBAL(kActThreads)
act_kernel(ActArgs<T> args) {
  const int64_t step = static_cast<int64_t>(ce::grid_x()) * kActThreads * N;
  int64_t at = (static_cast<int64_t>(ce::block_x()) * kActThreads + ce::thread_x()) * N;
  for (; at < args.count; at += step) {
    ce::Pack<T, N> x = ce::load<T, N>(args.x + at);
    for (int i = 0; i < N; ++i) x.v[i] = ce::from_float<T>(activated<kAct>(ce::to_float(x.v[i])));
    ce::store(args.out + at, x);
  }
}

// Blocks for `values` at one step a thread, as many as a grid may have in y.
inline int act_blocks(int64_t values, int a_step) {
  const int64_t blocks = (values + kActThreads * a_step - 1) / (kActThreads * a_step);
  return static_cast<int>(blocks < 65535 ? blocks : 65535);
}

template <typename T, GateAct kAct>
ce::Status launch_gated_act(const GatedActArgs<T>& args, ce::Stream stream) {
  const bool wide = args.width % ce::kWidest<T> == 0 && rows_are_wide(args.gate, args.in_stride) &&
                    rows_are_wide(args.up, args.in_stride) &&
                    rows_are_wide(static_cast<const T*>(args.out), args.out_stride);
  const int step = wide ? ce::kWidest<T> : 1;
  const ce::Dim grid = {static_cast<int>(args.rows), act_blocks(args.width, step)};
  const ce::Launch config = {"gated_act", grid, kActThreads, 0, stream};
  return wide ? ce::launch(gated_act_kernel<T, kAct, ce::kWidest<T>>, config, args)
              : ce::launch(gated_act_kernel<T, kAct, 1>, config, args);
}

template <typename T>
ce::Status gated_act(const GatedActArgs<T>& args, ce::Stream stream) {
  if (args.rows == 0 || args.width == 0) return {};
  switch (args.params.act) {
    case GateAct::silu:
      break;
    case GateAct::gelu_tanh:
      return launch_gated_act<T, GateAct::gelu_tanh>(args, stream);
    case GateAct::gelu_erf:
      return launch_gated_act<T, GateAct::gelu_erf>(args, stream);
    case GateAct::relu:
      return launch_gated_act<T, GateAct::relu>(args, stream);
    case GateAct::swiglu_clamped:
      return launch_gated_act<T, GateAct::swiglu_clamped>(args, stream);
  }
  return launch_gated_act<T, GateAct::silu>(args, stream);
}

template <typename T, Act kAct>
ce::Status launch_act(const ActArgs<T>& args, ce::Stream stream) {
  const bool wide = args.count % ce::kWidest<T> == 0 && rows_are_wide(args.x, 0) &&
                    rows_are_wide(static_cast<const T*>(args.out), 0);
  const int step = wide ? ce::kWidest<T> : 1;
  const ce::Launch config = {"act", {act_blocks(args.count, step)}, kActThreads, 0, stream};
  return wide ? ce::launch(act_kernel<T, kAct, ce::kWidest<T>>, config, args)
              : ce::launch(act_kernel<T, kAct, 1>, config, args);
}

template <typename T>
ce::Status act(const ActArgs<T>& args, Act which, ce::Stream stream) {
  if (args.count == 0) return {};
  switch (which) {
    case Act::silu:
      break;
    case Act::gelu_tanh:
      return launch_act<T, Act::gelu_tanh>(args, stream);
    case Act::gelu_erf:
      return launch_act<T, Act::gelu_erf>(args, stream);
    case Act::relu:
      return launch_act<T, Act::relu>(args, stream);
    case Act::relu_squared:
      return launch_act<T, Act::relu_squared>(args, stream);
    case Act::gelu_quick:
      return launch_act<T, Act::gelu_quick>(args, stream);
  }
  return launch_act<T, Act::silu>(args, stream);
}

}  // namespace optima::kernels::cuda
