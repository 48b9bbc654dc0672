// Products of tiles of bfloat16 for CPUs that have an instruction for pairs of bfloat16 but no
// tiles: sums of eight rows and two tiles' columns stay in registers while the factors pass by, a
// row of columns as it lies, a pair of a row in all lanes. Words are those of kernels/vec/avx512.h
// or their simulation, Instruction is AVX-512 BF16's or its own. Attention uses them from position
// From on.
#pragma once

#include <stdint.h>

#include "kernels/vec/tile_products.inl.h"

namespace optima::kernels {
namespace {

template <typename Vector, typename Instruction, typename Rounding, int64_t From>
struct RegisterTiles : Rounding {
  using V = Vector;
  using Sum = typename V::WideFloats;
  static constexpr int64_t kFromPosition = From;
  static constexpr int kRows = 8;

  static void begin() {}
  static void end() {}

  template <int As, int Bs>
  static void multiply(const TileRows& a, const TileRows& b, int64_t steps, const TileSums& sums) {
    for (int row = 0; row < 16 * As; row += kRows) {
      add_rows<Bs>(a.at + row / 16 * a.next + row % 16 * kTileRowBytes, a.step, b, steps,
                   {sums.at + row * sums.stride, sums.stride, sums.start});
    }
  }

 private:
  // kRows rows of one factor, whose tiles are `step` bytes apart.
  template <int Bs>
  static void add_rows(const uint8_t* a, int64_t step, const TileRows& b, int64_t steps,
                       const TileSums& sums) {
    Sum sum[kRows][Bs];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int j = 0; j < Bs; ++j) {
        sum[r][j] = sums.start == SumStart::zero
                        ? V::wide_zero()
                        : V::wide_load_floats(sums.at + r * sums.stride + 16 * j);
      }
    }
    for (int64_t s = 0; s < steps; ++s) {
      const uint8_t* columns = b.at + s * b.step;
      const uint8_t* rows = a + s * step;
      for (int pair = 0; pair < 16; ++pair, columns += kTileRowBytes, rows += 4) {
        typename V::Wide column[Bs];
#pragma GCC unroll 2
        for (int j = 0; j < Bs; ++j) column[j] = V::wide_load(columns + j * b.next);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const typename V::Wide row = V::wide_broadcast(rows + r * kTileRowBytes);
#pragma GCC unroll 2
          for (int j = 0; j < Bs; ++j) sum[r][j] = Instruction::add(sum[r][j], column[j], row);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int j = 0; j < Bs; ++j) {
        V::wide_store_floats(sums.at + r * sums.stride + 16 * j, sum[r][j]);
      }
    }
  }
};

}  // namespace
}  // namespace optima::kernels
