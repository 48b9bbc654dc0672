// Variants of attention, best first.
#include "kernels/attention/attention.h"

namespace optima::kernels {

void attention_ref(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch);
size_t attention_ref_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim);
void attention_split_ref(const AttentionArgs& args, int64_t kv_head, int64_t page_begin,
                         int64_t page_end, int64_t split, int64_t splits, float* partial,
                         void* scratch);
void attention_merge_ref(const AttentionArgs& args, int64_t head_begin, int64_t head_end,
                         int64_t splits, const float* partial);

Variants<AttentionKernel> attention_variants() {
  static constexpr Variant<AttentionKernel> kRows[] = {
      {"attention_ref", kIsaNone, {attention_ref, attention_ref_scratch}},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<AttentionSplitKernel> attention_split_variants() {
  static constexpr Variant<AttentionSplitKernel> kRows[] = {
      {"attention_split_ref",
       kIsaNone,
       {attention_split_ref, attention_merge_ref, attention_ref_scratch}},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
