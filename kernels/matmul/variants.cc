// The variants of this folder, best first.

#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

constexpr Variant<QuantiseRowsFn> kQuantiseRows[] = {
#if defined(__x86_64__)
    {"quantise_rows_avx2", kIsaAvx2, avx2::quantise_rows},
#endif
    {"quantise_rows_base", kIsaNone, baseline::quantise_rows},
};

constexpr Variant<MatmulKernel> kMatmul[] = {
#if defined(__x86_64__)
    {"matmul_avx512vnni",
     kIsaAvx2 | kIsaAvx512 | kIsaAvx512Vnni,
     {avx512::matmul, avx512::matmul_scratch_bytes, 32, avx512::matmul_panels_bytes,
      avx512::matmul_pack}},
    {"matmul_avx2",
     kIsaAvx2,
     {avx2::matmul, avx2::matmul_scratch_bytes, 16, avx2::matmul_panels_bytes, avx2::matmul_pack}},
#endif
    {"matmul_base", kIsaNone, {baseline::matmul, nullptr, 1, nullptr, nullptr}},
};

template <typename Fn, size_t N>
constexpr Variants<Fn> variants_of(const Variant<Fn> (&rows)[N]) {
  return {rows, N};
}

}  // namespace

Variants<QuantiseRowsFn> quantise_rows_variants() {
  return variants_of(kQuantiseRows);
}
Variants<MatmulKernel> matmul_variants() {
  return variants_of(kMatmul);
}

}  // namespace optima::kernels
