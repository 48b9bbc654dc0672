// Variants of attention, best first. All of them take every KV type.
#include "kernels/attention/attention.h"

namespace optima::kernels {

using ItemsFn = void(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch);
using SplitFn = void(const AttentionArgs& args, int64_t kv_head, int64_t page_begin,
                     int64_t page_end, int64_t split, int64_t splits, float* partial,
                     void* scratch);
using MergeFn = void(const AttentionArgs& args, int64_t row_begin, int64_t row_end, int64_t splits,
                     const float* partial);
using ScratchFn = size_t(int64_t heads, int64_t kv_heads, int64_t head_dim);

namespace amx {
ItemsFn attention;
ScratchFn attention_scratch;
}  // namespace amx
namespace avx512bf16 {
ItemsFn attention;
ScratchFn attention_scratch;
}  // namespace avx512bf16
namespace avx512 {
ItemsFn attention;
SplitFn attention_split;
MergeFn attention_merge;
ScratchFn attention_scratch;
}  // namespace avx512
namespace avx2 {
ItemsFn attention;
SplitFn attention_split;
MergeFn attention_merge;
ScratchFn attention_scratch;
}  // namespace avx2
namespace neon {
ItemsFn attention;
SplitFn attention_split;
MergeFn attention_merge;
ScratchFn attention_scratch;
}  // namespace neon
namespace baseline {
ItemsFn attention;
SplitFn attention_split;
MergeFn attention_merge;
ScratchFn attention_scratch;
}  // namespace baseline

Variants<AttentionKernel> attention_variants() {
  static constexpr auto kRows = rows_here<AttentionKernel>({
      {"attention_amx",
       kIsaAvx2 | kIsaAvx512 | kIsaAvx512Bf16 | kIsaAmx,
       {amx::attention, amx::attention_scratch}},
      {"attention_avx512bf16",
       kIsaAvx2 | kIsaAvx512 | kIsaAvx512Bf16 | kIsaFastBf16,
       {avx512bf16::attention, avx512bf16::attention_scratch}},
      {"attention_avx512", kIsaAvx512, {avx512::attention, avx512::attention_scratch}},
      {"attention_avx2", kIsaAvx2, {avx2::attention, avx2::attention_scratch}},
      {"attention_neon", kIsaNeon, {neon::attention, neon::attention_scratch}},
      {"attention_base", kIsaNone, {baseline::attention, baseline::attention_scratch}},
  });
  return kRows.variants();
}

Variants<AttentionSplitKernel> attention_split_variants() {
  static constexpr auto kRows = rows_here<AttentionSplitKernel>({
      {"attention_split_avx512",
       kIsaAvx512,
       {avx512::attention_split, avx512::attention_merge, avx512::attention_scratch}},
      {"attention_split_avx2",
       kIsaAvx2,
       {avx2::attention_split, avx2::attention_merge, avx2::attention_scratch}},
      {"attention_split_neon",
       kIsaNeon,
       {neon::attention_split, neon::attention_merge, neon::attention_scratch}},
      {"attention_split_base",
       kIsaNone,
       {baseline::attention_split, baseline::attention_merge, baseline::attention_scratch}},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
