// AMX's tiles in plain C++ (vec/amx.h has the real ones), TDPBF16PS as Intel's manual (volume 2)
// defines it: of each row and column two sums, of the even and of the odd k, each by fused
// multiply-adds in the order of k, then added to each other and to the tile. Factors come rounded,
// with zero in place of subnormal numbers; subnormal sums, which the CPU would drop, stay.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

namespace optima::kernels {
namespace {

struct SimulatedTiles {
  static constexpr int64_t kFromPosition = 0;
  struct State {
    bool in_use;
    float tile[8][16][16];
  };
  static State& state() {
    static thread_local State state;
    return state;
  }
  static void begin() { state() = {true, {}}; }
  static void end() { state() = {false, {}}; }

  template <int Tile>
  static void zero() {
    memset(state().tile[Tile], 0, sizeof state().tile[Tile]);
  }
  template <int Tile>
  static void load(const void* from, int64_t stride) {
    for (int row = 0; row < 16; ++row) {
      memcpy(state().tile[Tile][row], static_cast<const uint8_t*>(from) + row * stride, 64);
    }
  }
  template <int Tile>
  static void store(void* to, int64_t stride) {
    if (!state().in_use) __builtin_trap();  // as the instruction without a configuration
    for (int row = 0; row < 16; ++row) {
      memcpy(static_cast<uint8_t*>(to) + row * stride, state().tile[Tile][row], 64);
    }
  }
  template <int Sum, int A, int B>
  static void add_pairs() {
    uint16_t a[16][32];
    uint16_t b[16][32];
    memcpy(a, state().tile[A], sizeof a);
    memcpy(b, state().tile[B], sizeof b);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) {
        float even = 0;
        float odd = 0;
        for (int k = 0; k < 16; ++k) {
          even = sum(even, a[i][2 * k], b[k][2 * j]);
          odd = sum(odd, a[i][2 * k + 1], b[k][2 * j + 1]);
        }
        state().tile[Sum][i][j] += even + odd;
      }
    }
  }

  // A product of bfloat16 is exact in double, and so is all but the rounding of nearly every sum;
  // std::fma is a slow call where the CPU is not known to have it.
  static float sum(float start, uint16_t a, uint16_t b) {
    const double product = static_cast<double>(bf16_to_float(a)) * bf16_to_float(b);
    return static_cast<float>(start + product);
  }

  // To nearest even; subnormal numbers become zero.
  static uint16_t rounded(float x) {
    const bool normal = (float_bits(x) & 0x7f800000u) != 0;
    return float_to_bf16(normal ? x : float_from_bits(float_bits(x) & 0x80000000u));
  }
  template <typename Floats>
  static void round(const Floats& low, const Floats& high, uint8_t* to) {
    float x[32];
    memcpy(x, &low, sizeof low);
    memcpy(x + 16, &high, sizeof high);
    for (int i = 0; i < 32; ++i) {
      const uint16_t bits = rounded(x[i]);
      memcpy(to + 2 * i, &bits, sizeof bits);
    }
  }
  template <typename Floats>
  static void round_pairs(const Floats& first, const Floats& second, uint8_t* to) {
    uint8_t halves[64];
    round(first, second, halves);
    for (int i = 0; i < 16; ++i) {
      memcpy(to + 4 * i, halves + 2 * i, 2);
      memcpy(to + 4 * i + 2, halves + 32 + 2 * i, 2);
    }
  }
};

}  // namespace
}  // namespace optima::kernels
