// The row-wise functions of elementwise_cpu.inl.h for AVX2.
#include "kernels/vec/f32_avx2.h"

#include "kernels/elementwise/elementwise_cpu.inl.h"

namespace optima::kernels::avx2 {

void add(const float* a, const float* b, float* out, int64_t count) {
  add_rows<F32Avx2>(a, b, out, count);
}

void scale(const float* x, float factor, float* out, int64_t count) {
  scale_row<F32Avx2>(x, factor, out, count);
}

void gated_act(const float* gate, const float* up, float* out, int64_t count, GateAct act) {
  gate_rows<F32Avx2>(gate, up, out, count, act);
}

int64_t argmax(const float* x, int64_t count) {
  return first_largest<F32Avx2>(x, count);
}

}  // namespace optima::kernels::avx2
