// Variants of the rotary embedding, best first.
#include "kernels/rope/rope.h"

namespace optima::kernels {

void rope_ref(const RopeArgs& args, int64_t token_begin, int64_t token_end);
namespace avx2 {
void rope(const RopeArgs& args, int64_t token_begin, int64_t token_end);
}
namespace neon {
void rope(const RopeArgs& args, int64_t token_begin, int64_t token_end);
}

Variants<RopeFn> rope_variants() {
  static constexpr auto kRows = rows_here<RopeFn>({
      {"rope_avx2", kIsaAvx2, avx2::rope},
      {"rope_neon", kIsaNeon, neon::rope},
      {"rope_ref", kIsaNone, rope_ref},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
