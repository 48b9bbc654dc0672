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
void scale_row(const float* x, float factor, float* out, int64_t count) {
  using Reg = typename V::Reg;
  const Reg factors = V::set1(factor);
  map_pairs<V>(x, x, out, count, [factors](Reg a, Reg) { return V::mul(a, factors); });
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

template <typename V>
void gate_rows(const float* gate, const float* up, float* out, int64_t count, GateAct act) {
  using Reg = typename V::Reg;
  if (act == GateAct::silu) {
    map_pairs<V>(gate, up, out, count,
                 [](Reg x, Reg y) { return V::mul(times_sigmoid<V>(x, x), y); });
  } else {
    map_pairs<V>(gate, up, out, count, [](Reg x, Reg y) { return V::mul(gelu_tanh<V>(x), y); });
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
