// Sixteen floats in plain C++ (four of the compiler's portable 16-byte vectors), with the words of
// f32_avx2.h: the baseline of every machine, and the way to run what is written for sixteen lanes
// where the CPU has only eight.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

namespace optima::kernels {
namespace {

// Rows and Sums size the dot-product tiles: what the registers hold, or what a test wants.
template <int Rows, int Sums = Rows>
struct F32Plain {
  static constexpr int64_t kWidth = 16;
  static constexpr int kRows = Rows;
  static constexpr int kSums = Sums;
  typedef float Quad __attribute__((vector_size(16)));
  typedef uint32_t Bits __attribute__((vector_size(16)));
  typedef uint16_t Halves __attribute__((vector_size(8)));
  typedef int8_t Bytes __attribute__((vector_size(4)));
  struct Reg {
    Quad quad[4];
  };

  static inline Reg set1(float value) {
    const Quad q = {value, value, value, value};
    return {{q, q, q, q}};
  }
  static inline Reg zero() { return set1(0.0f); }
  static inline Reg load(const float* p) {
    Reg r;
    memcpy(r.quad, p, sizeof r.quad);
    return r;
  }
  static inline Reg load(const uint16_t* p) {
    return {{widen(p), widen(p + 4), widen(p + 8), widen(p + 12)}};
  }
  static inline Reg load(const Bf16* p) {
    return {{widen(p), widen(p + 4), widen(p + 8), widen(p + 12)}};
  }
  static inline Reg load(const int8_t* p) {
    return {{widen(p), widen(p + 4), widen(p + 8), widen(p + 12)}};
  }
  template <typename Element>
  static inline Reg load_n(const Element* p, int64_t n) {
    Element copy[kWidth] = {};
    for (int64_t i = 0; i < n; ++i) copy[i] = p[i];
    return load(copy);
  }
  static inline void store(float* p, const Reg& v) { memcpy(p, v.quad, sizeof v.quad); }
  static inline void store_n(float* p, const Reg& v, int64_t n) {
    memcpy(p, v.quad, static_cast<size_t>(n) * sizeof(float));
  }

  static inline Reg add(const Reg& a, const Reg& b) {
    return map(a, b, [](Quad x, Quad y) { return x + y; });
  }
  static inline Reg sub(const Reg& a, const Reg& b) {
    return map(a, b, [](Quad x, Quad y) { return x - y; });
  }
  static inline Reg mul(const Reg& a, const Reg& b) {
    return map(a, b, [](Quad x, Quad y) { return x * y; });
  }
  static inline Reg div(const Reg& a, const Reg& b) {
    return map(a, b, [](Quad x, Quad y) { return x / y; });
  }
  static inline Reg fma(const Reg& a, const Reg& b, const Reg& c) { return add(mul(a, b), c); }
  static inline Reg max(const Reg& a, const Reg& b) {
    return map(a, b, [](Quad x, Quad y) { return x > y ? x : y; });
  }
  static inline Reg min(const Reg& a, const Reg& b) {
    return map(a, b, [](Quad x, Quad y) { return x < y ? x : y; });
  }

  static inline Reg abs(const Reg& v) {
    return map(v, v, [](Quad x, Quad) { return as_quad(as_bits(x) & 0x7fffffffu); });
  }
  static inline Reg with_sign_of(const Reg& magnitude, const Reg& sign) {
    return map(magnitude, sign,
               [](Quad x, Quad y) { return as_quad(as_bits(x) | (as_bits(y) & 0x80000000u)); });
  }
  static inline Reg select_less(const Reg& a, const Reg& b, const Reg& x, const Reg& y) {
    Reg r;
    for (int i = 0; i < 4; ++i) r.quad[i] = a.quad[i] < b.quad[i] ? x.quad[i] : y.quad[i];
    return r;
  }
  static inline Reg keep_range(const Reg& v, int64_t first, int64_t begin, int64_t end) {
    float lanes[kWidth];
    store(lanes, v);
    for (int64_t i = 0; i < kWidth; ++i) {
      if (first + i < begin || first + i >= end) lanes[i] = -__builtin_inff();
    }
    return load(lanes);
  }
  static inline Reg pow2(const Reg& t) {
    return map(t, t, [](Quad x, Quad) { return as_quad((as_bits(x) << 23) + (127u << 23)); });
  }

  static inline float sum(const Reg& v) {
    const Quad q = (v.quad[0] + v.quad[2]) + (v.quad[1] + v.quad[3]);
    return (q[0] + q[2]) + (q[1] + q[3]);
  }
  static inline float largest(const Reg& v) {
    float lanes[kWidth];
    store(lanes, v);
    float result = lanes[0];
    for (const float lane : lanes) result = result > lane ? result : lane;
    return result;
  }

 private:
  template <typename Function>
  static inline Reg map(const Reg& a, const Reg& b, const Function& function) {
    return {{function(a.quad[0], b.quad[0]), function(a.quad[1], b.quad[1]),
             function(a.quad[2], b.quad[2]), function(a.quad[3], b.quad[3])}};
  }
  static inline Bits as_bits(Quad v) {
    Bits bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
  }
  static inline Quad as_quad(Bits v) {
    Quad quad;
    memcpy(&quad, &v, sizeof quad);
    return quad;
  }
  static inline Quad widen(const Bf16* p) {
    Halves halves;
    memcpy(&halves, p, sizeof halves);
    return as_quad(__builtin_convertvector(halves, Bits) << 16);
  }
  static inline Quad widen(const int8_t* p) {
    Bytes bytes;
    memcpy(&bytes, p, sizeof bytes);
    return __builtin_convertvector(bytes, Quad);
  }
  // half_to_float of kernels/half.h on four values.
  static inline Quad widen(const uint16_t* p) {
    Halves halves;
    memcpy(&halves, p, sizeof halves);
    const Bits half = __builtin_convertvector(halves, Bits);
    const Bits magnitude = half & 0x7fffu;
    const Bits all_ones = Bits{} + 0x7c00u;
    const Bits rebias = magnitude >= all_ones ? Bits{} + (224u << 23) : Bits{} + (112u << 23);
    const Bits normal = (magnitude << 13) + rebias;
    const Quad tiny = __builtin_convertvector(magnitude, Quad) * 0x1p-24f;
    const Bits value = magnitude < Bits{} + 0x0400u ? as_bits(tiny) : normal;
    return as_quad(value | ((half & 0x8000u) << 16));
  }
};

}  // namespace
}  // namespace optima::kernels
