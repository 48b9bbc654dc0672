// The passes of vocabulary_cpu.inl.h for 64-bit Arm.
#include "kernels/vec/f32_neon.h"

#include "kernels/vocabulary/vocabulary_cpu.inl.h"

namespace optima::kernels::neon {

int64_t vocabulary_maxima(const float* x, int64_t count, float* maxima) {
  return block_maxima<F32Neon>(x, count, maxima);
}

void vocabulary_weights(const float* x, int64_t count, float highest, float temperature,
                        float* out) {
  weigh_row<F32Neon>(x, count, highest, temperature, out);
}

void vocabulary_masses(const float* x, int64_t count, float highest, float temperature,
                       double* masses) {
  block_masses<F32Neon>(x, count, highest, temperature, masses);
}

}  // namespace optima::kernels::neon
