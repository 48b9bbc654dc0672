// neon.h with the instruction for int8 dot products (FEAT_DotProd).
#pragma once

#include "kernels/vec/neon.h"

namespace optima::kernels {
namespace {

struct DotInstruction {
  static int32x4_t add(int32x4_t sum, int8x16_t w, int8x16_t a) { return vdotq_s32(sum, w, a); }
};

using NeonDot = NeonVector<DotInstruction>;

}  // namespace
}  // namespace optima::kernels
