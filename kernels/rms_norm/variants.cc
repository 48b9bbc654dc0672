// Variants of the norm, best first.
#include "kernels/rms_norm/rms_norm.h"

namespace optima::kernels {

void rms_norm_ref(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);

Variants<RmsNormFn> rms_norm_variants() {
  static constexpr Variant<RmsNormFn> kRows[] = {
      {"rms_norm_ref", kIsaNone, rms_norm_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
