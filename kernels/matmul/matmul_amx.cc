// Matrix products on AMX: quantised weights meet activations rounded to it in tiles of bfloat16;
// others, and few rows, as on AVX-512 with VNNI.

#include "kernels/matmul/rows.h"
#include "kernels/matmul/tiles.inl.h"
#include "kernels/vec/amx.h"
#include "kernels/vec/avx512.h"

namespace optima::kernels {
namespace {
using V = Avx512Vector<NoDots>;
constexpr WideTable kTable = make_wide_table<TileGemm<V, AmxTiles>>();
}  // namespace

namespace amx {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (args.arranged == nullptr || !uses_quantised_activations(args.type)) {
    return avx512::matmul(args, n_begin, n_end);
  }
  run_wide(kTable, args, n_begin, n_end);
}

size_t matmul_scratch_bytes(int64_t m, int64_t k) {
  const size_t few = avx512::matmul_scratch_bytes(m, k);
  constexpr auto kMany = static_cast<size_t>(wide_scratch_bytes());
  return few > kMany ? few : kMany;
}

void arrange_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end, void* arranged) {
  round_wide_rows<V, AmxTiles>(x, k, row_begin, row_end, arranged);
}

}  // namespace amx
}  // namespace optima::kernels
