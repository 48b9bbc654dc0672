// Matrix products on AVX-512 with VNNI.

#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/matmul/tile_vnni.inl.h"
#include "kernels/vec/avx512.h"

namespace optima::kernels {
namespace {
constexpr KernelTable kTable = make_table<TileVnni<Avx512>>();
}  // namespace

namespace avx512 {

void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  run_table(kTable, args, n_begin, n_end);
}

size_t matmul_scratch_bytes(int64_t /*m*/, int64_t k) {
  return table_scratch_bytes(k);
}

}  // namespace avx512
}  // namespace optima::kernels
