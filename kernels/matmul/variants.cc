// The variants of this folder, best first.

#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

constexpr Variant<QuantiseRowsFn> kQuantiseRows[] = {
    {"quantise_rows_base", kIsaNone, baseline::quantise_rows},
};

constexpr Variant<MatmulKernel> kMatmul[] = {
    {"matmul_base", kIsaNone, {baseline::matmul, nullptr, 1}},
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
