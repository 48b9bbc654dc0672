// Matrix products on AVX-512 with VNNI.

#include "kernels/matmul/coarse.inl.h"
#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/panel_dot.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/vec/avx512.h"

namespace optima::kernels {
namespace {
struct EvexDot {
  using Word [[gnu::may_alias]] = int32_t;
  static __m256i add(__m256i sum, __m256i u, __m256i a) { return _mm256_dpbusd_epi32(sum, u, a); }
  static __m512i add(__m512i sum, __m512i u, __m512i a) { return _mm512_dpbusd_epi32(sum, u, a); }
  // GCC 12 does not give the intrinsic an operand in memory that is broadcast.
  static __m512i add_quad(__m512i sum, __m512i u, const void* a) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(u), "m"(*static_cast<const Word*>(a)));
    return sum;
  }
};
using V = Avx512Vector<EvexDot>;
constexpr KernelTable kTable = make_table<PanelDot<V>>();
constexpr WideTable kArranged = make_wide_table<SevensGemm<V>>();
constexpr WideTable kCoarse = make_wide_table<CoarseGemm<V>>();
}  // namespace

namespace avx512 {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (args.arranged != nullptr && uses_quantised_activations(args.type)) {
    return run_wide(args.row_sums == RowSums::alike ? kArranged : kCoarse, args, n_begin, n_end);
  }
  run_table(kTable, args, n_begin, n_end);
}

size_t matmul_scratch_bytes(int64_t /*m*/, int64_t k) {
  const size_t few = table_scratch_bytes(k);
  constexpr auto kMany = static_cast<size_t>(arranged_scratch_bytes());
  return few > kMany ? few : kMany;
}

void arrange_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end, void* arranged) {
  arrange_sevens<avx2::quantise_rows>(x, k, row_begin, row_end, arranged);
}

size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k) {
  return table_panels_bytes(kTable, type, n, k);
}

void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels) {
  pack_table(kTable, args, n_begin, n_end, panels);
}

}  // namespace avx512
}  // namespace optima::kernels
