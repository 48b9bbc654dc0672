// Variants of the row-wise functions, best first.
#include "kernels/elementwise/elementwise.h"

namespace optima::kernels {

namespace avx2 {
FunctionOf<AddFn> add;
FunctionOf<MulFn> mul;
FunctionOf<AddBiasFn> add_bias;
FunctionOf<ScaleFn> scale;
FunctionOf<SoftcapFn> softcap;
FunctionOf<ActFn> act;
FunctionOf<GatedActFn> gated_act;
FunctionOf<ArgmaxFn> argmax;
}  // namespace avx2
namespace neon {
FunctionOf<AddFn> add;
FunctionOf<MulFn> mul;
FunctionOf<AddBiasFn> add_bias;
FunctionOf<ScaleFn> scale;
FunctionOf<SoftcapFn> softcap;
FunctionOf<ActFn> act;
FunctionOf<GatedActFn> gated_act;
FunctionOf<ArgmaxFn> argmax;
}  // namespace neon
namespace baseline {
FunctionOf<AddFn> add;
FunctionOf<MulFn> mul;
FunctionOf<AddBiasFn> add_bias;
FunctionOf<ScaleFn> scale;
FunctionOf<SoftcapFn> softcap;
FunctionOf<ActFn> act;
FunctionOf<GatedActFn> gated_act;
FunctionOf<ArgmaxFn> argmax;
}  // namespace baseline

Variants<AddFn> add_variants() {
  static constexpr auto kRows = rows_here<AddFn>({
      {"add_avx2", kIsaAvx2, avx2::add},
      {"add_neon", kIsaNeon, neon::add},
      {"add_base", kIsaNone, baseline::add},
  });
  return kRows.variants();
}

Variants<MulFn> mul_variants() {
  static constexpr auto kRows = rows_here<MulFn>({
      {"mul_avx2", kIsaAvx2, avx2::mul},
      {"mul_neon", kIsaNeon, neon::mul},
      {"mul_base", kIsaNone, baseline::mul},
  });
  return kRows.variants();
}

Variants<AddBiasFn> add_bias_variants() {
  static constexpr auto kRows = rows_here<AddBiasFn>({
      {"add_bias_avx2", kIsaAvx2, avx2::add_bias},
      {"add_bias_neon", kIsaNeon, neon::add_bias},
      {"add_bias_base", kIsaNone, baseline::add_bias},
  });
  return kRows.variants();
}

Variants<ScaleFn> scale_variants() {
  static constexpr auto kRows = rows_here<ScaleFn>({
      {"scale_avx2", kIsaAvx2, avx2::scale},
      {"scale_neon", kIsaNeon, neon::scale},
      {"scale_base", kIsaNone, baseline::scale},
  });
  return kRows.variants();
}

Variants<SoftcapFn> softcap_variants() {
  static constexpr auto kRows = rows_here<SoftcapFn>({
      {"softcap_avx2", kIsaAvx2, avx2::softcap},
      {"softcap_neon", kIsaNeon, neon::softcap},
      {"softcap_base", kIsaNone, baseline::softcap},
  });
  return kRows.variants();
}

Variants<ActFn> act_variants() {
  static constexpr auto kRows = rows_here<ActFn>({
      {"act_avx2", kIsaAvx2, avx2::act},
      {"act_neon", kIsaNeon, neon::act},
      {"act_base", kIsaNone, baseline::act},
  });
  return kRows.variants();
}

Variants<GatedActFn> gated_act_variants() {
  static constexpr auto kRows = rows_here<GatedActFn>({
      {"gated_act_avx2", kIsaAvx2, avx2::gated_act},
      {"gated_act_neon", kIsaNeon, neon::gated_act},
      {"gated_act_base", kIsaNone, baseline::gated_act},
  });
  return kRows.variants();
}

Variants<ArgmaxFn> argmax_variants() {
  static constexpr auto kRows = rows_here<ArgmaxFn>({
      {"argmax_avx2", kIsaAvx2, avx2::argmax},
      {"argmax_neon", kIsaNeon, neon::argmax},
      {"argmax_base", kIsaNone, baseline::argmax},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
