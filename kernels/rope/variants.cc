// Variants of the rotary embedding, best first.
#include "kernels/rope/rope.h"

namespace optima::kernels {

void rope_ref(const RopeArgs& args, int64_t token_begin, int64_t token_end);

Variants<RopeFn> rope_variants() {
  static constexpr Variant<RopeFn> kRows[] = {
      {"rope_ref", kIsaNone, rope_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
