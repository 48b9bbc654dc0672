// Variants of the rotary embedding, best first.
#include "kernels/rope/rope.h"

namespace optima::kernels {

void rope_ref(const RopeArgs& args, int64_t token_begin, int64_t token_end);
#if defined(__x86_64__)
namespace avx2 {
void rope(const RopeArgs& args, int64_t token_begin, int64_t token_end);
}
#endif

Variants<RopeFn> rope_variants() {
  static constexpr Variant<RopeFn> kRows[] = {
#if defined(__x86_64__)
    {"rope_avx2", kIsaAvx2, avx2::rope},
#endif
    {"rope_ref", kIsaNone, rope_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
