// The row-wise functions of elementwise_cpu.inl.h for 64-bit Arm.
#include "kernels/vec/f32_neon.h"

#include "kernels/elementwise/elementwise_cpu.inl.h"

namespace optima::kernels::neon {

void add(const float* a, const float* b, float* out, int64_t count) {
  add_rows<F32Neon>(a, b, out, count);
}

void mul(const float* a, const float* b, float* out, int64_t count) {
  mul_rows<F32Neon>(a, b, out, count);
}

void add_bias(const float* x, const float* bias, float* out, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows * width; i += width) add_rows<F32Neon>(x + i, bias, out + i, width);
}

void scale(const float* x, float factor, float* out, int64_t count) {
  scale_row<F32Neon>(x, factor, out, count);
}

void softcap(const float* x, float cap, float* out, int64_t count) {
  softcap_row<F32Neon>(x, cap, out, count);
}

void act(const float* x, float* out, int64_t count, Act function) {
  act_row<F32Neon>(x, out, count, function);
}

void gated_act(const float* gate, const float* up, float* out, int64_t count,
               const GateActParams& params) {
  gate_rows<F32Neon>(gate, up, out, count, params);
}

int64_t argmax(const float* x, int64_t count) {
  return first_largest<F32Neon>(x, count);
}

}  // namespace optima::kernels::neon
