// The norm for AVX2: layer_norm_cpu.inl.h.
#include "kernels/vec/f32_avx2.h"
#include "kernels/vec/f64_avx2.h"

#include "kernels/layer_norm/layer_norm_cpu.inl.h"

namespace optima::kernels::avx2 {

void layer_norm(const LayerNormArgs& args, int64_t row_begin, int64_t row_end) {
  layer_norm_rows<F32Avx2, F64Avx2>(args, row_begin, row_end);
}

}  // namespace optima::kernels::avx2
