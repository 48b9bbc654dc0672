// The row-wise functions in plain loops; transcendental ones in double.
#include <math.h>

#include "kernels/elementwise/elementwise.h"

namespace optima::kernels {
namespace {

void add_ref(const float* a, const float* b, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

void scale_ref(const float* x, float factor, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * factor;
}

double silu(double x) {
  return x / (1.0 + exp(-x));
}

double gelu_tanh(double x) {
  const double kSqrtTwoOverPi = 0.79788456080286535588;
  return 0.5 * x * (1.0 + tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

void gated_act_ref(const float* gate, const float* up, float* out, int64_t count, GateAct act) {
  for (int64_t i = 0; i < count; ++i) {
    const double activated = act == GateAct::silu ? silu(gate[i]) : gelu_tanh(gate[i]);
    out[i] = static_cast<float>(activated * up[i]);
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
const ScaleFn kScaleReference = scale_ref;
const GatedActFn kGatedActReference = gated_act_ref;
const ArgmaxFn kArgmaxReference = argmax_ref;

}  // namespace optima::kernels
