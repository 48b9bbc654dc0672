// The paged attention of attention_cpu.inl.h for AVX-512 with its products by AVX-512 BF16.
#include "kernels/vec/f32_avx512.h"

#include "kernels/attention/attention_cpu.inl.h"
#include "kernels/vec/avx512.h"
#include "kernels/vec/bf16_avx512.h"
#include "kernels/vec/register_tiles.inl.h"

namespace optima::kernels {
namespace {

// Shorter contexts gain little, and rounding there costs fidelity: perplexity of Gemma 3 270M in
// windows of 512 13.873 -> 13.911 (docs/PERFORMANCE.md).
constexpr int64_t kFromPosition = 1024;

using Tiles = RegisterTiles<Avx512Vector<NoDots>, EvexBf16, TileRounding, kFromPosition>;

}  // namespace

namespace avx512bf16 {

size_t attention_scratch(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return work_bytes_with_tiles(heads, kv_heads, head_dim);
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  run_attention<F32Avx512, Tiles>(args, begin, end, scratch);
}

}  // namespace avx512bf16
}  // namespace optima::kernels
