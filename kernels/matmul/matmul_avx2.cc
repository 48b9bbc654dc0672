// Matrix products on AVX2.

#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/matmul/tile_avx2.inl.h"

namespace optima::kernels {
namespace {
constexpr KernelTable kTable = make_table<TileAvx2>();
}  // namespace

namespace avx2 {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  run_table(kTable, args, n_begin, n_end);
}

size_t matmul_scratch_bytes(int64_t /*m*/, int64_t k) {
  return table_scratch_bytes(k);
}

}  // namespace avx2
}  // namespace optima::kernels
