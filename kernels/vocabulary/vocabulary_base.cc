// The passes of vocabulary_cpu.inl.h in plain C++, for CPUs without wide vectors.
#include "kernels/vec/f32_plain.h"

#include "kernels/vocabulary/vocabulary_cpu.inl.h"

namespace optima::kernels::baseline {

int64_t vocabulary_maxima(const float* x, int64_t count, float* maxima) {
  return block_maxima<F32Plain<2>>(x, count, maxima);
}

void vocabulary_weights(const float* x, int64_t count, float highest, float temperature,
                        float* out) {
  weigh_row<F32Plain<2>>(x, count, highest, temperature, out);
}

void vocabulary_masses(const float* x, int64_t count, float highest, float temperature,
                       double* masses) {
  block_masses<F32Plain<2>>(x, count, highest, temperature, masses);
}

}  // namespace optima::kernels::baseline
