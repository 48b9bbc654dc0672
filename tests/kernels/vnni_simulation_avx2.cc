// The matrix products of AVX2 with VNNI, the one instruction that AVX2 lacks replaced by four of
// its own. This file alone is compiled for AVX2, so it includes nothing that others share.
#include "tests/kernels/vnni_simulation.h"

#if defined(__AVX2__)

#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/panel_dot.inl.h"
#include "kernels/vec/avx_vnni.h"

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

constexpr KernelTable kTable = make_table<PanelDot<AvxVnniVector<WidenedDot>>>();

void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  run_table(kTable, args, n_begin, n_end);
}
size_t scratch_bytes(int64_t /*m*/, int64_t k) {
  return table_scratch_bytes(k);
}
size_t panels_bytes(WeightType type, int64_t n, int64_t k) {
  return table_panels_bytes(kTable, type, n, k);
}
void pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels) {
  pack_table(kTable, args, n_begin, n_end, panels);
}

constexpr Variant<MatmulKernel> kRows[] = {
    {"matmul_simavxvnni", kIsaAvx2, {run, scratch_bytes, 16, panels_bytes, pack}}};

}  // namespace

Variants<MatmulKernel> vnni_simulations() {
  return {kRows, 1};
}

}  // namespace optima::kernels

#else

namespace optima::kernels {

Variants<MatmulKernel> vnni_simulations() {
  return {nullptr, 0};
}

}  // namespace optima::kernels

#endif
