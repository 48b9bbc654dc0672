// The rotary embedding for 64-bit Arm: rope_cpu.inl.h.
#include "kernels/vec/f32_neon.h"

#include "kernels/rope/rope_cpu.inl.h"

namespace optima::kernels::neon {

void rope(const RopeArgs& args, int64_t token_begin, int64_t token_end) {
  rotate_tokens<F32Neon>(args, token_begin, token_end);
}

}  // namespace optima::kernels::neon
