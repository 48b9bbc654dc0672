// The norm for 64-bit Arm: layer_norm_cpu.inl.h.
#include "kernels/vec/f32_neon.h"
#include "kernels/vec/f64_neon.h"

#include "kernels/layer_norm/layer_norm_cpu.inl.h"

namespace optima::kernels::neon {

void layer_norm(const LayerNormArgs& args, int64_t row_begin, int64_t row_end) {
  layer_norm_rows<F32Neon, F64Neon>(args, row_begin, row_end);
}

}  // namespace optima::kernels::neon
