// neon_dot.h with the instruction for int8 matrix products (FEAT_I8MM): two rows of eight codes
// times two rows of eight activations, twice the products of a dot instruction.
#pragma once

#include "kernels/vec/neon_dot.h"

namespace optima::kernels {
namespace {

struct NeonI8mm : NeonDot {
  static constexpr bool kSquares = true;

  // Eight codes of sixteen rows, two rows to a register.
  struct Eights {
    int8x16_t part[8];
  };
  // Sums of sixteen rows for two columns: rows 2 i and 2 i + 1 are [row][column] of part i.
  struct Square {
    int32x4_t part[8];
  };
  static Eights eights(const Wide& first, const Wide& second) {
    Eights out;
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t low = vreinterpretq_u32_u8(first.part[i]);
      const uint32x4_t high = vreinterpretq_u32_u8(second.part[i]);
      out.part[2 * i] = vreinterpretq_s8_u32(vzip1q_u32(low, high));
      out.part[2 * i + 1] = vreinterpretq_s8_u32(vzip2q_u32(low, high));
    }
    return out;
  }
  static Square square_zero() {
    Square out;
    for (int32x4_t& part : out.part) part = vdupq_n_s32(0);
    return out;
  }
  // Times eight values of each column.
  static void square_add(Square& sum, const Eights& w, const int8_t* a, const int8_t* b) {
    const int8x16_t both = vcombine_s8(vld1_s8(a), vld1_s8(b));
    for (int i = 0; i < 8; ++i) sum.part[i] = vmmlaq_s32(sum.part[i], w.part[i], both);
  }
  // Adds the sums of each column.
  static void square_split(const Square& sum, Wide& first, Wide& second) {
    for (int i = 0; i < 4; ++i) {
      const int32x4_t low = vuzp1q_s32(sum.part[2 * i], sum.part[2 * i + 1]);
      const int32x4_t high = vuzp2q_s32(sum.part[2 * i], sum.part[2 * i + 1]);
      first.part[i] = vreinterpretq_u8_s32(vaddq_s32(vreinterpretq_s32_u8(first.part[i]), low));
      second.part[i] = vreinterpretq_u8_s32(vaddq_s32(vreinterpretq_s32_u8(second.part[i]), high));
    }
  }
};

}  // namespace
}  // namespace optima::kernels
