// The paged attention of attention_cpu.inl.h in plain C++, for CPUs without wide vectors.
#include "kernels/vec/f32_plain.h"

#include "kernels/attention/attention_cpu.inl.h"

namespace optima::kernels::baseline {
namespace {
// Two rows of sixteen sums fill the sixteen 128-bit registers of the baseline.
using Plain = F32Plain<2>;
}  // namespace

size_t attention_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return work_bytes(heads, kv_heads, head_dim);
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  run_attention<Plain>(args, begin, end, scratch);
}

void attention_split(const AttentionArgs& args, int64_t kv_head, int64_t page_begin,
                     int64_t page_end, int64_t split, int64_t splits, float* partial,
                     void* scratch) {
  run_split<Plain>(args, kv_head, {page_begin, page_end}, split, splits, partial, scratch);
}

void attention_merge(const AttentionArgs& args, int64_t row_begin, int64_t row_end, int64_t splits,
                     const float* partial) {
  merge_splits<Plain>(args, {row_begin, row_end}, splits, partial);
}

}  // namespace optima::kernels::baseline
