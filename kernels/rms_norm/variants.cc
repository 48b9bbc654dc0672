// Variants of the norm, best first.
#include "kernels/rms_norm/rms_norm.h"

namespace optima::kernels {

void rms_norm_ref(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
#if defined(__x86_64__)
namespace avx2 {
void rms_norm(const RmsNormArgs& args, int64_t row_begin, int64_t row_end);
}
#endif

Variants<RmsNormFn> rms_norm_variants() {
  static constexpr Variant<RmsNormFn> kRows[] = {
#if defined(__x86_64__)
    {"rms_norm_avx2", kIsaAvx2, avx2::rms_norm},
#endif
    {"rms_norm_ref", kIsaNone, rms_norm_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
