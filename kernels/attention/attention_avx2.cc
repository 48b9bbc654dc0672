// The paged attention of attention_cpu.inl.h for AVX2, FMA and F16C.
#include "kernels/vec/f32_avx2.h"

#include "kernels/attention/attention_cpu.inl.h"

namespace optima::kernels::avx2 {

size_t attention_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return work_bytes(heads, kv_heads, head_dim);
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  run_attention<F32Avx2>(args, begin, end, scratch);
}

void attention_split(const AttentionArgs& args, int64_t kv_head, int64_t page_begin,
                     int64_t page_end, int64_t split, int64_t splits, float* partial,
                     void* scratch) {
  const Range within = {page_begin * kPageTokens, page_end * kPageTokens};
  const Block block = {args, kv_head, 0, 1, args.heads / args.kv_heads, within};
  const int64_t stride = args.head_dim + 2;
  run_split<F32Avx2>(block, scratch, partial + (kv_head * block.group * splits + split) * stride,
                     splits * stride);
}

void attention_merge(const AttentionArgs& args, int64_t head_begin, int64_t head_end,
                     int64_t splits, const float* partial) {
  for (int64_t head = head_begin; head < head_end; ++head) {
    merge_splits<F32Avx2>(args, head, splits, partial + head * splits * (args.head_dim + 2));
  }
}

}  // namespace optima::kernels::avx2
