// The norm for 64-bit Arm: rms_norm_cpu.inl.h.
#include "kernels/vec/f32_neon.h"
#include "kernels/vec/f64_neon.h"

#include "kernels/rms_norm/rms_norm_cpu.inl.h"

namespace optima::kernels::neon {

void rms_norm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end) {
  rms_norm_rows<F32Neon, F64Neon>(args, row_begin, row_end);
}

}  // namespace optima::kernels::neon
