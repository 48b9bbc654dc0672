// The row-wise functions over the words of kernels/vec/f32_*.h. Tails are loaded and stored by
// lanes, so no value outside the rows is touched and `out` may equal an input.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "kernels/vec/math.inl.h"

namespace optima::kernels {
namespace {

// out[i] = function(a[i], b[i]).
template <typename V, typename Function>
inline void map_pairs(const float* a, const float* b, float* out, int64_t count,
                      const Function& function) {
  int64_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) {
    V::store(out + i, function(V::load(a + i), V::load(b + i)));
  }
  if (const int64_t rest = count - i; rest > 0) {
    V::store_n(out + i, function(V::load_n(a + i, rest), V::load_n(b + i, rest)), rest);
  }
}

template <typename V>
void add_rows(const float* a, const float* b, float* out, int64_t count) {
  using Reg = typename V::Reg;
  map_pairs<V>(a, b, out, count, [](Reg x, Reg y) { return V::add(x, y); });
}

template <typename V>
void mul_rows(const float* a, const float* b, float* out, int64_t count) {
  using Reg = typename V::Reg;
  map_pairs<V>(a, b, out, count, [](Reg x, Reg y) { return V::mul(x, y); });
}

template <typename V>
void scale_row(const float* x, float factor, float* out, int64_t count) {
  using Reg = typename V::Reg;
  const Reg factors = V::set1(factor);
  map_pairs<V>(x, x, out, count, [factors](Reg a, Reg) { return V::mul(a, factors); });
}

template <typename V>
void softcap_row(const float* x, float cap, float* out, int64_t count) {
  using Reg = typename V::Reg;
  const Reg caps = V::set1(cap);
  map_pairs<V>(x, x, out, count,
               [caps](Reg a, Reg) { return V::mul(caps, vec_tanh<V>(V::div(a, caps))); });
}

// x · σ(t).
template <typename V>
inline typename V::Reg times_sigmoid(typename V::Reg x, typename V::Reg t) {
  const typename V::Reg one = V::set1(1.0f);
  return V::div(x, V::add(one, vec_exp<V>(V::sub(V::zero(), t))));
}

// 0.5 x (1 + tanh u) = x σ(2u): one exp, and no cancellation where tanh u nears -1.
template <typename V>
inline typename V::Reg gelu_tanh(typename V::Reg x) {
  using Reg = typename V::Reg;
  const Reg twice_sqrt_two_over_pi = V::set1(1.5957691216057308f);
  const Reg cube = V::mul(V::mul(x, x), x);
  const Reg inner = V::fma(cube, V::set1(0.044715f), x);
  return times_sigmoid<V>(x, V::mul(inner, twice_sqrt_two_over_pi));
}

// cdf(-a) = erfc(a / √2) / 2 for a >= 0. exp(z * z) erfc(z) is t times a polynomial in t = 1 / (1 +
// 0.4 z) (weighted minimax fit for z up to 9.4, error 7e-9 relative, 3e-7 with the roundings of
// fp32); past that the exponential is 0.
template <typename V>
inline typename V::Reg normal_tail(typename V::Reg a) {
  using Reg = typename V::Reg;
  const Reg one = V::set1(1.0f);
  const Reg t = V::div(one, V::fma(a, V::set1(0.28284271247461901f), one));
  Reg p = V::set1(-0.030801009386777878f);
  p = V::fma(p, t, V::set1(0.20460189878940582f));
  p = V::fma(p, t, V::set1(-0.5143985748291016f));
  p = V::fma(p, t, V::set1(0.5683639049530029f));
  p = V::fma(p, t, V::set1(-0.3019070327281952f));
  p = V::fma(p, t, V::set1(0.2815631628036499f));
  p = V::fma(p, t, V::set1(0.12636426091194153f));
  p = V::fma(p, t, V::set1(0.2156374156475067f));
  p = V::fma(p, t, V::set1(0.22486449778079987f));
  p = V::fma(p, t, V::set1(0.22571147978305817f));
  const Reg half_square = V::mul(V::mul(a, a), V::set1(-0.5f));
  return V::mul(V::mul(V::mul(p, t), V::set1(0.5f)), vec_exp<V>(half_square));
}

// x cdf(x). On the negative side the cdf is the tail itself: 1 minus the other one would cancel.
template <typename V>
inline typename V::Reg gelu_erf(typename V::Reg x) {
  using Reg = typename V::Reg;
  const Reg tail = normal_tail<V>(V::abs(x));
  return V::mul(x, V::select_less(V::zero(), x, V::sub(V::set1(1.0f), tail), tail));
}

template <typename V>
inline typename V::Reg gelu_quick(typename V::Reg x) {
  return times_sigmoid<V>(x, V::mul(x, V::set1(1.702f)));
}

// max and min give their second operand where either is NaN.
template <typename V>
inline typename V::Reg relu(typename V::Reg x) {
  return V::max(V::zero(), x);
}

template <typename V>
void act_row(const float* x, float* out, int64_t count, Act act) {
  using Reg = typename V::Reg;
  const auto apply = [&](const auto& function) {
    map_pairs<V>(x, x, out, count, [&function](Reg a, Reg) { return function(a); });
  };
  switch (act) {
    case Act::silu:
      apply([](Reg a) { return times_sigmoid<V>(a, a); });
      break;
    case Act::gelu_tanh:
      apply([](Reg a) { return gelu_tanh<V>(a); });
      break;
    case Act::gelu_erf:
      apply([](Reg a) { return gelu_erf<V>(a); });
      break;
    case Act::relu:
      apply([](Reg a) { return relu<V>(a); });
      break;
    case Act::relu_squared:
      apply([](Reg a) { return V::mul(relu<V>(a), relu<V>(a)); });
      break;
    case Act::gelu_quick:
      apply([](Reg a) { return gelu_quick<V>(a); });
      break;
  }
}

template <typename V>
void swiglu_clamped_rows(const float* gate, const float* up, float* out, int64_t count,
                         const GateActParams& params) {
  using Reg = typename V::Reg;
  const Reg limit = V::set1(params.limit);
  const Reg lowest = V::set1(-params.limit);
  const Reg alpha = V::set1(params.alpha);
  const Reg one = V::set1(1.0f);
  map_pairs<V>(gate, up, out, count, [=](Reg x, Reg y) {
    const Reg g = V::min(limit, x);
    const Reg u = V::max(lowest, V::min(limit, y));
    return V::mul(times_sigmoid<V>(g, V::mul(alpha, g)), V::add(u, one));
  });
}

template <typename V>
void gate_rows(const float* gate, const float* up, float* out, int64_t count,
               const GateActParams& params) {
  using Reg = typename V::Reg;
  const auto apply = [&](const auto& function) {
    map_pairs<V>(gate, up, out, count,
                 [&function](Reg x, Reg y) { return V::mul(function(x), y); });
  };
  switch (params.act) {
    case GateAct::silu:
      apply([](Reg a) { return times_sigmoid<V>(a, a); });
      break;
    case GateAct::gelu_tanh:
      apply([](Reg a) { return gelu_tanh<V>(a); });
      break;
    case GateAct::gelu_erf:
      apply([](Reg a) { return gelu_erf<V>(a); });
      break;
    case GateAct::relu:
      apply([](Reg a) { return relu<V>(a); });
      break;
    case GateAct::swiglu_clamped:
      swiglu_clamped_rows<V>(gate, up, out, count, params);
      break;
  }
}

// Two passes: the largest value that is no NaN, then the first place that holds it.
template <typename V>
int64_t first_largest(const float* x, int64_t count) {
  typename V::Reg largest = V::set1(-__builtin_inff());
  int64_t i = 0;
  // max keeps its second operand where either is NaN: a NaN in x is passed over.
  for (; i + V::kWidth <= count; i += V::kWidth) largest = V::max(V::load(x + i), largest);
  float value = V::largest(largest);
  for (; i < count; ++i) {
    if (x[i] > value) value = x[i];
  }
  for (i = 0; i < count; ++i) {
    if (x[i] == value) return i;
  }
  return -1;
}

}  // namespace
}  // namespace optima::kernels
