// The passes of vocabulary_cpu.inl.h for AVX2.
#include "kernels/vec/f32_avx2.h"

#include "kernels/vocabulary/vocabulary_cpu.inl.h"

namespace optima::kernels::avx2 {

int64_t vocabulary_maxima(const float* x, int64_t count, float* maxima) {
  return block_maxima<F32Avx2>(x, count, maxima);
}

void vocabulary_weights(const float* x, int64_t count, float highest, float temperature,
                        float* out) {
  weigh_row<F32Avx2>(x, count, highest, temperature, out);
}

void vocabulary_masses(const float* x, int64_t count, float highest, float temperature,
                       double* masses) {
  block_masses<F32Avx2>(x, count, highest, temperature, masses);
}

}  // namespace optima::kernels::avx2
