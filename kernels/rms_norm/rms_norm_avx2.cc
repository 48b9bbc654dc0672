// The norm for AVX2: rms_norm_cpu.inl.h.
#include "kernels/vec/f32_avx2.h"
#include "kernels/vec/f64_avx2.h"

#include "kernels/rms_norm/rms_norm_cpu.inl.h"

namespace optima::kernels::avx2 {

void rms_norm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end) {
  rms_norm_rows<F32Avx2, F64Avx2>(args, row_begin, row_end);
}

}  // namespace optima::kernels::avx2
