// Intel AMX: eight tiles of sixteen rows of 64 bytes, and the instruction that multiplies two of
// them as pairs of bfloat16. Written as assembly, because a tile's number is part of the
// instruction and GCC's intrinsics take it as text alone. The compiler keeps nothing in tiles, and
// "memory" tells it what it cannot see of loads and stores.
//
// A thread that has tiles in use pays for them at each context switch and signal, so whoever begins
// also ends.
#pragma once

#include <stdint.h>

#include "kernels/vec/bf16_avx512.h"

namespace optima::kernels {
namespace {

struct AmxTiles : TileRounding {
  static constexpr int64_t kFromPosition = 0;  // of attention
  // All eight tiles become whole ones, full of zeros.
  static void begin() {
    struct alignas(64) Config {
      uint8_t palette;
      uint8_t start_row;
      uint8_t reserved[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } config = {};
    static_assert(sizeof config == 64);
    config.palette = 1;
    for (int i = 0; i < 8; ++i) {
      config.row_bytes[i] = 64;
      config.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config) : "memory");
  }
  static void end() { __asm__ volatile("tilerelease" ::: "memory"); }

  template <int Tile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(Tile));
  }
  // Sixteen rows, `stride` bytes apart.
  template <int Tile>
  static void load(const void* from, int64_t stride) {
    __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(Tile), "r"(from), "r"(stride)
                     : "memory");
  }
  template <int Tile>
  static void store(void* to, int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(Tile), "r"(to), "r"(stride) : "memory");
  }
  // sum[i][j] += Σ a[i][k] * b[k / 2][j][k % 2] over k < 32: floats, and pairs of bfloat16.
  template <int Sum, int A, int B>
  static void add_pairs() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(A), "i"(B));
  }
};

}  // namespace
}  // namespace optima::kernels
