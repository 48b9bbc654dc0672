// exp and tanh over the vectors of this folder. Coefficients: weighted minimax fits, error of the
// polynomials below 5e-9 relative; with the roundings of fp32 both functions are within 3e-7.
#pragma once

#include <stdint.h>

namespace optima::kernels {
namespace {

// NaN stays NaN. Below -87.3 (the smallest normal result) the value is 0, above 88.4 infinity.
template <typename V>
inline typename V::Reg vec_exp(typename V::Reg argument) {
  using Reg = typename V::Reg;
  const Reg lowest = V::set1(-87.3f);
  const Reg x = V::min(V::set1(88.8f), V::max(lowest, argument));
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 leaves n in the low bits of the sum;
  // ln 2 is split so that n times its upper part is exact.
  const Reg shift = V::set1(12582912.0f);
  const Reg shifted = V::add(V::mul(x, V::set1(1.44269504f)), shift);
  const Reg n = V::sub(shifted, shift);
  Reg r = V::fma(n, V::set1(-0.693359375f), x);
  r = V::fma(n, V::set1(2.12194440e-4f), r);
  Reg p = V::set1(0.0013813144760206342f);
  p = V::fma(p, r, V::set1(0.008369418792426586f));
  p = V::fma(p, r, V::set1(0.04166845604777336f));
  p = V::fma(p, r, V::set1(0.16666515171527863f));
  p = V::fma(p, r, V::set1(0.4999999403953552f));
  p = V::add(V::fma(V::mul(r, r), p, r), V::set1(1.0f));
  return V::select_less(argument, lowest, V::zero(), V::mul(p, V::pow2(shifted)));
}

template <typename V>
inline typename V::Reg vec_tanh(typename V::Reg x) {
  using Reg = typename V::Reg;
  const Reg a = V::abs(x);
  const Reg e = vec_exp<V>(V::add(a, a));
  const Reg one = V::set1(1.0f);
  const Reg big = V::sub(one, V::div(V::set1(2.0f), V::add(e, one)));
  // Near zero the difference above cancels: an odd polynomial takes over.
  const Reg z = V::mul(a, a);
  Reg p = V::set1(-0.005709496792405844f);
  p = V::fma(p, z, V::set1(0.020644135773181915f));
  p = V::fma(p, z, V::set1(-0.05374162271618843f));
  p = V::fma(p, z, V::set1(0.13331469893455505f));
  p = V::fma(p, z, V::set1(-0.3333328366279602f));
  const Reg small = V::fma(V::mul(a, z), p, a);
  return V::with_sign_of(V::select_less(a, V::set1(0.625f), small, big), x);
}

}  // namespace
}  // namespace optima::kernels
