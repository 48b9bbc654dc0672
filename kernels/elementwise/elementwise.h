// Row-wise functions on fp32 activations. `out` may equal an input. A NaN in stays a NaN out.
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

using AddFn = void (*)(const float* a, const float* b, float* out, int64_t count);
Variants<AddFn> add_variants();
extern const AddFn kAddReference;

// out = a * b, value by value.
using MulFn = void (*)(const float* a, const float* b, float* out, int64_t count);
Variants<MulFn> mul_variants();
extern const MulFn kMulReference;

// x and out: [rows, width] without gaps; out = x + bias in every row. out may not equal bias.
using AddBiasFn = void (*)(const float* x, const float* bias, float* out, int64_t rows,
                           int64_t width);
Variants<AddBiasFn> add_bias_variants();
extern const AddBiasFn kAddBiasReference;

// SiLU: x·σ(x).  GELU: x·cdf(x) of the normal distribution, exactly (erf) or in its tanh form:
// Hendrycks & Gimpel, arXiv:1606.08415.
enum class GateAct : int32_t {
  silu = 0,
  gelu_tanh = 1,
  gelu_erf = 2,
  relu = 3,
  swiglu_clamped = 4,  // gpt-oss: the only one that reads alpha and limit
};
struct GateActParams {
  GateAct act;
  float alpha;  // 1.702 in gpt-oss
  float limit;  // 7 in gpt-oss
};
// out = act(gate) * up; swiglu_clamped: with g = min(gate, limit) and u = up within ±limit,
// out = g·σ(alpha·g) * (u + 1).
using GatedActFn = void (*)(const float* gate, const float* up, float* out, int64_t count,
                            const GateActParams& params);
Variants<GatedActFn> gated_act_variants();
extern const GatedActFn kGatedActReference;

enum class Act : int32_t {
  silu = 0,
  gelu_tanh = 1,
  gelu_erf = 2,
  relu = 3,
  relu_squared = 4,
  gelu_quick = 5,  // x·σ(1.702 x)
};
using ActFn = void (*)(const float* x, float* out, int64_t count, Act act);
Variants<ActFn> act_variants();
extern const ActFn kActReference;

using ScaleFn = void (*)(const float* x, float factor, float* out, int64_t count);
Variants<ScaleFn> scale_variants();
extern const ScaleFn kScaleReference;

// out = cap * tanh(x / cap), cap > 0.
using SoftcapFn = void (*)(const float* x, float cap, float* out, int64_t count);
Variants<SoftcapFn> softcap_variants();
extern const SoftcapFn kSoftcapReference;

// Index of the first largest value, -1 when count is 0 or all are NaN.
using ArgmaxFn = int64_t (*)(const float* x, int64_t count);
Variants<ArgmaxFn> argmax_variants();
extern const ArgmaxFn kArgmaxReference;

}  // namespace optima::kernels
