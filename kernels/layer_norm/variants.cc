// Variants of the norm, best first.
#include "kernels/layer_norm/layer_norm.h"

namespace optima::kernels {

void layer_norm_ref(const LayerNormArgs& args, int64_t row_begin, int64_t row_end);
namespace avx2 {
void layer_norm(const LayerNormArgs& args, int64_t row_begin, int64_t row_end);
}
namespace neon {
void layer_norm(const LayerNormArgs& args, int64_t row_begin, int64_t row_end);
}

Variants<LayerNormFn> layer_norm_variants() {
  static constexpr auto kRows = rows_here<LayerNormFn>({
      {"layer_norm_avx2", kIsaAvx2, avx2::layer_norm},
      {"layer_norm_neon", kIsaNeon, neon::layer_norm},
      {"layer_norm_ref", kIsaNone, layer_norm_ref},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
