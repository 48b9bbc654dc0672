// The row-wise functions of elementwise_cpu.inl.h in plain C++, for CPUs without wide vectors.
#include "kernels/vec/f32_plain.h"

#include "kernels/elementwise/elementwise_cpu.inl.h"

namespace optima::kernels::baseline {

void add(const float* a, const float* b, float* out, int64_t count) {
  add_rows<F32Plain<2>>(a, b, out, count);
}

void mul(const float* a, const float* b, float* out, int64_t count) {
  mul_rows<F32Plain<2>>(a, b, out, count);
}

void add_bias(const float* x, const float* bias, float* out, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows * width; i += width)
    add_rows<F32Plain<2>>(x + i, bias, out + i, width);
}

void scale(const float* x, float factor, float* out, int64_t count) {
  scale_row<F32Plain<2>>(x, factor, out, count);
}

void softcap(const float* x, float cap, float* out, int64_t count) {
  softcap_row<F32Plain<2>>(x, cap, out, count);
}

void act(const float* x, float* out, int64_t count, Act function) {
  act_row<F32Plain<2>>(x, out, count, function);
}

void gated_act(const float* gate, const float* up, float* out, int64_t count,
               const GateActParams& params) {
  gate_rows<F32Plain<2>>(gate, up, out, count, params);
}

int64_t argmax(const float* x, int64_t count) {
  return first_largest<F32Plain<2>>(x, count);
}

}  // namespace optima::kernels::baseline
