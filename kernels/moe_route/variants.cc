// Variants of the routing, best first.
#include "kernels/moe_route/moe_route.h"

namespace optima::kernels {

void moe_route_ref(const MoeRouteArgs& args, int64_t row_begin, int64_t row_end);

Variants<MoeRouteFn> moe_route_variants() {
  static constexpr auto kRows = rows_here<MoeRouteFn>({
      {"moe_route_ref", kIsaNone, moe_route_ref},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
