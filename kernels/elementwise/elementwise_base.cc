// The row-wise functions of elementwise_cpu.inl.h in plain C++, for CPUs without wide vectors.
#include "kernels/vec/f32_plain.h"

#include "kernels/elementwise/elementwise_cpu.inl.h"

namespace optima::kernels::baseline {

void add(const float* a, const float* b, float* out, int64_t count) {
  add_rows<F32Plain<2>>(a, b, out, count);
}

void scale(const float* x, float factor, float* out, int64_t count) {
  scale_row<F32Plain<2>>(x, factor, out, count);
}

void gated_act(const float* gate, const float* up, float* out, int64_t count, GateAct act) {
  gate_rows<F32Plain<2>>(gate, up, out, count, act);
}

int64_t argmax(const float* x, int64_t count) {
  return first_largest<F32Plain<2>>(x, count);
}

}  // namespace optima::kernels::baseline
