// The KV store for 64-bit Arm: kv_store_cpu.inl.h.
#include "kernels/vec/f32_neon.h"

#include "kernels/kv_store/kv_store_cpu.inl.h"

namespace optima::kernels::neon {

void kv_store(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  store_heads<F32Neon>(args, head_begin, head_end);
}

}  // namespace optima::kernels::neon
