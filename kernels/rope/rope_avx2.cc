// The rotary embedding for AVX2: rope_cpu.inl.h.
#include "kernels/vec/f32_avx2.h"

#include "kernels/rope/rope_cpu.inl.h"

namespace optima::kernels::avx2 {

void rope(const RopeArgs& args, int64_t token_begin, int64_t token_end) {
  rotate_tokens<F32Avx2>(args, token_begin, token_end);
}

}  // namespace optima::kernels::avx2
