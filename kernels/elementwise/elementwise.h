// Row-wise functions on fp32 activations. `out` may equal an input.
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

using AddFn = void (*)(const float* a, const float* b, float* out, int64_t count);
Variants<AddFn> add_variants();
extern const AddFn kAddReference;

enum class GateAct : int32_t { silu = 0, gelu_tanh = 1 };
// out = act(gate) * up.  SiLU: x·σ(x).  GELU (tanh form): Hendrycks & Gimpel, arXiv:1606.08415.
using GatedActFn = void (*)(const float* gate, const float* up, float* out, int64_t count,
                            GateAct act);
Variants<GatedActFn> gated_act_variants();
extern const GatedActFn kGatedActReference;

using ScaleFn = void (*)(const float* x, float factor, float* out, int64_t count);
Variants<ScaleFn> scale_variants();
extern const ScaleFn kScaleReference;

// Index of the first largest value, -1 when count is 0 or all are NaN.
using ArgmaxFn = int64_t (*)(const float* x, int64_t count);
Variants<ArgmaxFn> argmax_variants();
extern const ArgmaxFn kArgmaxReference;

}  // namespace optima::kernels
