// Matrix products on AVX-512 with VNNI.

#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/panel_dot.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/vec/avx512.h"

namespace optima::kernels {
namespace {
struct EvexDot {
  static __m256i add(__m256i sum, __m256i u, __m256i a) { return _mm256_dpbusd_epi32(sum, u, a); }
  static __m512i add(__m512i sum, __m512i u, __m512i a) { return _mm512_dpbusd_epi32(sum, u, a); }
};
constexpr KernelTable kTable = make_table<PanelDot<Avx512Vector<EvexDot>>>();
}  // namespace

namespace avx512 {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  run_table(kTable, args, n_begin, n_end);
}

size_t matmul_scratch_bytes(int64_t /*m*/, int64_t k) {
  return table_scratch_bytes(k);
}

size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k) {
  return table_panels_bytes(kTable, type, n, k);
}

void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels) {
  pack_table(kTable, args, n_begin, n_end, panels);
}

}  // namespace avx512
}  // namespace optima::kernels
