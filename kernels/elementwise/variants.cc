// Variants of the row-wise functions, best first.
#include "kernels/elementwise/elementwise.h"

namespace optima::kernels {

void add_ref(const float* a, const float* b, float* out, int64_t count);
void scale_ref(const float* x, float factor, float* out, int64_t count);
void gated_act_ref(const float* gate, const float* up, float* out, int64_t count, GateAct act);
int64_t argmax_ref(const float* x, int64_t count);

Variants<AddFn> add_variants() {
  static constexpr Variant<AddFn> kRows[] = {
      {"add_ref", kIsaNone, add_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<GatedActFn> gated_act_variants() {
  static constexpr Variant<GatedActFn> kRows[] = {
      {"gated_act_ref", kIsaNone, gated_act_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<ScaleFn> scale_variants() {
  static constexpr Variant<ScaleFn> kRows[] = {
      {"scale_ref", kIsaNone, scale_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<ArgmaxFn> argmax_variants() {
  static constexpr Variant<ArgmaxFn> kRows[] = {
      {"argmax_ref", kIsaNone, argmax_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
