// The paged attention of attention_cpu.inl.h for 64-bit Arm.
#include "kernels/vec/f32_neon.h"

#include "kernels/attention/attention_cpu.inl.h"

namespace optima::kernels::neon {

size_t attention_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return work_bytes(heads, kv_heads, head_dim);
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  run_attention<F32Neon>(args, begin, end, scratch);
}

void attention_split(const AttentionArgs& args, int64_t kv_head, int64_t page_begin,
                     int64_t page_end, int64_t split, int64_t splits, float* partial,
                     void* scratch) {
  run_split<F32Neon>(args, kv_head, {page_begin, page_end}, split, splits, partial, scratch);
}

void attention_merge(const AttentionArgs& args, int64_t row_begin, int64_t row_end, int64_t splits,
                     const float* partial) {
  merge_splits<F32Neon>(args, {row_begin, row_end}, splits, partial);
}

}  // namespace optima::kernels::neon
