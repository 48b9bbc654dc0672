// Variants of the row-wise functions, best first.
#include "kernels/elementwise/elementwise.h"

namespace optima::kernels {

#if defined(__x86_64__)
namespace avx2 {
void add(const float* a, const float* b, float* out, int64_t count);
void mul(const float* a, const float* b, float* out, int64_t count);
void add_bias(const float* x, const float* bias, float* out, int64_t rows, int64_t width);
void scale(const float* x, float factor, float* out, int64_t count);
void softcap(const float* x, float cap, float* out, int64_t count);
void act(const float* x, float* out, int64_t count, Act function);
void gated_act(const float* gate, const float* up, float* out, int64_t count,
               const GateActParams& params);
int64_t argmax(const float* x, int64_t count);
}  // namespace avx2
#endif
namespace baseline {
void add(const float* a, const float* b, float* out, int64_t count);
void mul(const float* a, const float* b, float* out, int64_t count);
void add_bias(const float* x, const float* bias, float* out, int64_t rows, int64_t width);
void scale(const float* x, float factor, float* out, int64_t count);
void softcap(const float* x, float cap, float* out, int64_t count);
void act(const float* x, float* out, int64_t count, Act function);
void gated_act(const float* gate, const float* up, float* out, int64_t count,
               const GateActParams& params);
int64_t argmax(const float* x, int64_t count);
}  // namespace baseline

Variants<AddFn> add_variants() {
  static constexpr Variant<AddFn> kRows[] = {
#if defined(__x86_64__)
    {"add_avx2", kIsaAvx2, avx2::add},
#endif
    {"add_base", kIsaNone, baseline::add},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<MulFn> mul_variants() {
  static constexpr Variant<MulFn> kRows[] = {
#if defined(__x86_64__)
    {"mul_avx2", kIsaAvx2, avx2::mul},
#endif
    {"mul_base", kIsaNone, baseline::mul},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<AddBiasFn> add_bias_variants() {
  static constexpr Variant<AddBiasFn> kRows[] = {
#if defined(__x86_64__)
    {"add_bias_avx2", kIsaAvx2, avx2::add_bias},
#endif
    {"add_bias_base", kIsaNone, baseline::add_bias},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<ScaleFn> scale_variants() {
  static constexpr Variant<ScaleFn> kRows[] = {
#if defined(__x86_64__)
    {"scale_avx2", kIsaAvx2, avx2::scale},
#endif
    {"scale_base", kIsaNone, baseline::scale},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<SoftcapFn> softcap_variants() {
  static constexpr Variant<SoftcapFn> kRows[] = {
#if defined(__x86_64__)
    {"softcap_avx2", kIsaAvx2, avx2::softcap},
#endif
    {"softcap_base", kIsaNone, baseline::softcap},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<ActFn> act_variants() {
  static constexpr Variant<ActFn> kRows[] = {
#if defined(__x86_64__)
    {"act_avx2", kIsaAvx2, avx2::act},
#endif
    {"act_base", kIsaNone, baseline::act},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<GatedActFn> gated_act_variants() {
  static constexpr Variant<GatedActFn> kRows[] = {
#if defined(__x86_64__)
    {"gated_act_avx2", kIsaAvx2, avx2::gated_act},
#endif
    {"gated_act_base", kIsaNone, baseline::gated_act},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

Variants<ArgmaxFn> argmax_variants() {
  static constexpr Variant<ArgmaxFn> kRows[] = {
#if defined(__x86_64__)
    {"argmax_avx2", kIsaAvx2, avx2::argmax},
#endif
    {"argmax_base", kIsaNone, baseline::argmax},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
