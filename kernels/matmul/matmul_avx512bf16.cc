// BF16 weights on AVX-512 BF16; other types, and few rows, as on AVX-512 with VNNI.

#include "kernels/matmul/bf16.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/vec/avx512.h"

namespace optima::kernels {
namespace {

struct EvexBf16 {
  static __m512 add(__m512 sum, __m512i w, __m512i a) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(a));
  }
  // Sixteen floats at x to as many bfloat16.
  static void round(const float* x, uint8_t* to) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x));
    memcpy(to, &rounded, sizeof rounded);
  }
};
struct NoDots {};  // of bytes: none is taken here
using Words = Bf16Words<Avx512Vector<NoDots>, EvexBf16>;

}  // namespace

namespace avx512bf16 {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (!bf16_suits(args)) return avx512::matmul(args, n_begin, n_end);
  word_gemm<Words>(args, n_begin, n_end);
}

}  // namespace avx512bf16
}  // namespace optima::kernels
