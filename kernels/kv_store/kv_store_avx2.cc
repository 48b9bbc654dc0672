// The KV store for AVX2: kv_store_cpu.inl.h.
#include "kernels/vec/f32_avx2.h"

#include "kernels/kv_store/kv_store_cpu.inl.h"

namespace optima::kernels::avx2 {

void kv_store(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  store_heads<F32Avx2>(args, head_begin, head_end);
}

}  // namespace optima::kernels::avx2
