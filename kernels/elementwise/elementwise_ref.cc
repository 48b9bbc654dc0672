// The row-wise functions in plain loops; transcendental ones in double.
#include <math.h>

#include "kernels/elementwise/elementwise.h"

namespace optima::kernels {
namespace {

void add_ref(const float* a, const float* b, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

void mul_ref(const float* a, const float* b, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

void add_bias_ref(const float* x, const float* bias, float* out, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i) out[row * width + i] = x[row * width + i] + bias[i];
  }
}

void scale_ref(const float* x, float factor, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * factor;
}

void softcap_ref(const float* x, float cap, float* out, int64_t count) {
  const double wide = static_cast<double>(cap);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(wide * tanh(static_cast<double>(x[i]) / wide));
  }
}

// x · σ(t).
double times_sigmoid(double x, double t) {
  return x / (1.0 + exp(-t));
}

double gelu_tanh(double x) {
  const double kSqrtTwoOverPi = 0.79788456080286535588;
  return 0.5 * x * (1.0 + tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

// The normal cdf by erfc, which keeps its digits far out on the negative side.
double gelu_erf(double x) {
  return 0.5 * x * erfc(x * -0.70710678118654752440);
}

// The comparisons let NaN through.
double relu(double x) {
  return x < 0 ? 0 : x;
}

double at_most(double x, double limit) {
  return x > limit ? limit : x;
}

double activated(double x, Act act) {
  switch (act) {
    case Act::silu:
      return times_sigmoid(x, x);
    case Act::gelu_tanh:
      return gelu_tanh(x);
    case Act::gelu_erf:
      return gelu_erf(x);
    case Act::relu:
      return relu(x);
    case Act::relu_squared:
      return relu(x) * relu(x);
    case Act::gelu_quick:
      return times_sigmoid(x, 1.702 * x);
  }
  return static_cast<double>(NAN);
}

void act_ref(const float* x, float* out, int64_t count, Act act) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(activated(static_cast<double>(x[i]), act));
  }
}

double gated(double gate, double up, const GateActParams& params) {
  switch (params.act) {
    case GateAct::silu:
      return activated(gate, Act::silu) * up;
    case GateAct::gelu_tanh:
      return activated(gate, Act::gelu_tanh) * up;
    case GateAct::gelu_erf:
      return activated(gate, Act::gelu_erf) * up;
    case GateAct::relu:
      return activated(gate, Act::relu) * up;
    case GateAct::swiglu_clamped: {
      const double limit = static_cast<double>(params.limit);
      const double g = at_most(gate, limit);
      const double u = at_most(up, limit) < -limit ? -limit : at_most(up, limit);
      return times_sigmoid(g, static_cast<double>(params.alpha) * g) * (u + 1.0);
    }
  }
  return static_cast<double>(NAN);
}

void gated_act_ref(const float* gate, const float* up, float* out, int64_t count,
                   const GateActParams& params) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] =
        static_cast<float>(gated(static_cast<double>(gate[i]), static_cast<double>(up[i]), params));
  }
}

int64_t argmax_ref(const float* x, int64_t count) {
  int64_t best_index = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (isnan(x[i])) continue;
    if (best_index < 0 || x[i] > x[best_index]) best_index = i;
  }
  return best_index;
}

}  // namespace

const AddFn kAddReference = add_ref;
const MulFn kMulReference = mul_ref;
const AddBiasFn kAddBiasReference = add_bias_ref;
const ScaleFn kScaleReference = scale_ref;
const SoftcapFn kSoftcapReference = softcap_ref;
const ActFn kActReference = act_ref;
const GatedActFn kGatedActReference = gated_act_ref;
const ArgmaxFn kArgmaxReference = argmax_ref;

}  // namespace optima::kernels
