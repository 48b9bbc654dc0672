// Variants of the norm, best first.
#include "kernels/rms_norm/rms_norm.h"

namespace optima::kernels {

void rms_norm_ref(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
namespace avx2 {
void rms_norm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
}
namespace neon {
void rms_norm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
}

Variants<RmsNormFn> rms_norm_variants() {
  static constexpr auto kRows = rows_here<RmsNormFn>({
      {"rms_norm_avx2", kIsaAvx2, avx2::rms_norm},
      {"rms_norm_neon", kIsaNeon, neon::rms_norm},
      {"rms_norm_ref", kIsaNone, rms_norm_ref},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
