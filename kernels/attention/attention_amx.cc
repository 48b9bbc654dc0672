// The paged attention of attention_cpu.inl.h for AVX-512 with the tiles of AMX.
#include "kernels/vec/f32_avx512.h"

#include "kernels/attention/attention_cpu.inl.h"
#include "kernels/vec/amx.h"

namespace optima::kernels::amx {

size_t attention_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return work_bytes_with_tiles(heads, kv_heads, head_dim);
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  run_attention<F32Avx512, AmxTiles>(args, begin, end, scratch);
}

}  // namespace optima::kernels::amx
