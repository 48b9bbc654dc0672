// Variants of the routing, best first.
#include "kernels/moe_route/moe_route.h"

namespace optima::kernels {

void moe_route_ref(const MoeRouteArgs& args, int64_t row_begin, int64_t row_end);

Variants<MoeRouteFn> moe_route_variants() {
  static constexpr Variant<MoeRouteFn> kRows[] = {
      {"moe_route_ref", kIsaNone, moe_route_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
