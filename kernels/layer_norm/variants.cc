// Variants of the norm, best first.
#include "kernels/layer_norm/layer_norm.h"

namespace optima::kernels {

void layer_norm_ref(const LayerNormArgs& args, int64_t row_begin, int64_t row_end);
#if defined(__x86_64__)
namespace avx2 {
void layer_norm(const LayerNormArgs& args, int64_t row_begin, int64_t row_end);
}
#endif

Variants<LayerNormFn> layer_norm_variants() {
  static constexpr Variant<LayerNormFn> kRows[] = {
#if defined(__x86_64__)
    {"layer_norm_avx2", kIsaAvx2, avx2::layer_norm},
#endif
    {"layer_norm_ref", kIsaNone, layer_norm_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
