// VNNI's instruction in those of AVX2, and the row of a test that runs over it. Everything is in an
// unnamed namespace: two files compiled for different instruction sets include this.
#pragma once

#include <immintrin.h>

#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/panel_dot.inl.h"

namespace optima::kernels {
namespace {

struct WidenedDot {
  static __m256i half(__m128i u, __m128i a) {
    return _mm256_madd_epi16(_mm256_cvtepu8_epi16(u), _mm256_cvtepi8_epi16(a));
  }
  static __m256i add(__m256i sum, __m256i u, __m256i a) {
    const __m256i low = half(_mm256_castsi256_si128(u), _mm256_castsi256_si128(a));
    const __m256i high = half(_mm256_extracti128_si256(u, 1), _mm256_extracti128_si256(a, 1));
    const __m256i fours = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
    return _mm256_add_epi32(sum, fours);
  }
};

template <typename V>
constexpr KernelTable kTable = make_table<PanelDot<V>>();

template <typename V>
void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  run_table(kTable<V>, args, n_begin, n_end);
}
size_t scratch_bytes(int64_t /*m*/, int64_t k) {
  return table_scratch_bytes(k);
}
template <typename V>
size_t panels_bytes(WeightType type, int64_t n, int64_t k) {
  return table_panels_bytes(kTable<V>, type, n, k);
}
template <typename V>
void pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels) {
  pack_table(kTable<V>, args, n_begin, n_end, panels);
}

template <typename V>
constexpr Variant<MatmulKernel> simulated_row(const char* name, IsaMask isa, int granule) {
  return {name, isa, {run<V>, scratch_bytes, granule, panels_bytes<V>, pack<V>}};
}

}  // namespace
}  // namespace optima::kernels
