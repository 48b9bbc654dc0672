// BF16 weights on AVX-512 BF16; other types, and few rows, as on AVX-512 with VNNI.

#include "kernels/matmul/bf16.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/vec/avx512.h"
#include "kernels/vec/bf16_avx512.h"

namespace optima::kernels {
namespace {

using Words = Bf16Words<Avx512Vector<NoDots>, EvexBf16>;

}  // namespace

namespace avx512bf16 {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (!bf16_suits(args)) return avx512::matmul(args, n_begin, n_end);
  word_gemm<Words>(args, n_begin, n_end);
}

}  // namespace avx512bf16
}  // namespace optima::kernels
