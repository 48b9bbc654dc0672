// avx2.h with dot products of bytes by VNNI's instruction: four products of u8 x s8 are added to an
// int32 lane without saturation. Instruction::add is that instruction over 32 bytes, in whatever
// encoding the CPU has, or its simulation.
#pragma once

#include "kernels/vec/avx2.h"

namespace optima::kernels {
namespace {

template <typename Instruction>
struct VnniDots : Avx2 {
  static Floats dot(Bytes u, Bytes a) { return to_float(Instruction::add(zero_sum(), u, a)); }
  static Floats dot_signed(Bytes w, Bytes a) {
    return dot(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
  }
  static Floats dot_pair(Bytes u0, Bytes a0, Bytes u1, Bytes a1) {
    return to_float(Instruction::add(Instruction::add(zero_sum(), u0, a0), u1, a1));
  }
  static Floats dot_signed_pair(Bytes w0, Bytes a0, Bytes w1, Bytes a1) {
    return dot_pair(_mm256_abs_epi8(w0), _mm256_sign_epi8(a0, w0), _mm256_abs_epi8(w1),
                    _mm256_sign_epi8(a1, w1));
  }

 private:
  static Bytes zero_sum() { return _mm256_setzero_si256(); }
};

}  // namespace
}  // namespace optima::kernels
