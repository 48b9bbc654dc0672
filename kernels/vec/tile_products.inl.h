// Sums of products of tiles, over the words of vec/amx.h or their simulation: up to two tiles of
// one factor times up to two of the other. The sums are tiles 0..3 (row after row), the factors 4,
// 5 and 6, 7: a load for each product, as many as the CPU does meanwhile.
#pragma once

#include <stdint.h>

namespace optima::kernels {
namespace {

constexpr int64_t kTileBytes = 1024;  // 16 rows of 64 bytes
constexpr int64_t kTileRowBytes = 64;

// Tiles of one factor: the first of each row (or column) of tiles `next` bytes behind that of the
// one before, those of one row `step` bytes apart.
struct TileRows {
  const uint8_t* at;
  int64_t next;
  int64_t step;
};

// Where sums belong: that of tile row i and column j begins 16 (i stride + j) floats behind `at`,
// and its rows are `stride` floats apart. They start from zero, or from what is there.
enum class SumStart : uint8_t { zero, there };
struct TileSums {
  float* at;
  int64_t stride;
  SumStart start;
};

// Calls body for each sum of As x Bs: its tile, and where it is among them.
template <int Tile>
struct TileIndex {
  static constexpr int value = Tile;
};
template <int As, int Bs, typename Body>
inline void each_sum(const Body& body) {
  body(TileIndex<0>(), 0, 0);
  if constexpr (Bs == 2) body(TileIndex<1>(), 0, 1);
  if constexpr (As == 2) body(TileIndex<2>(), 1, 0);
  if constexpr (As == 2 && Bs == 2) body(TileIndex<3>(), 1, 1);
}

// sums[i][j] += Σ a[i][s] b[j][s] over s < steps.
template <typename Tiles, int As, int Bs>
inline void add_tile_products(TileRows a, TileRows b, int64_t steps) {
  for (int64_t s = 0; s < steps; ++s, a.at += a.step, b.at += b.step) {
    Tiles::template load<6>(b.at, kTileRowBytes);
    Tiles::template load<4>(a.at, kTileRowBytes);
    Tiles::template add_pairs<0, 4, 6>();
    if constexpr (Bs == 2) Tiles::template load<7>(b.at + b.next, kTileRowBytes);
    if constexpr (Bs == 2) Tiles::template add_pairs<1, 4, 7>();
    if constexpr (As == 2) Tiles::template load<5>(a.at + a.next, kTileRowBytes);
    if constexpr (As == 2) Tiles::template add_pairs<2, 5, 6>();
    if constexpr (As == 2 && Bs == 2) Tiles::template add_pairs<3, 5, 7>();
  }
}

// The same for sums in memory. RegisterTiles have a way of their own.
template <typename Tiles, int As, int Bs>
inline void multiply_tiles(const TileRows& a, const TileRows& b, int64_t steps,
                           const TileSums& sums) {
  if constexpr (requires { Tiles::template multiply<As, Bs>(a, b, steps, sums); }) {
    Tiles::template multiply<As, Bs>(a, b, steps, sums);
  } else {
    const int64_t stride = sums.stride * static_cast<int64_t>(sizeof(float));
    const auto at = [&](int i, int j) { return sums.at + 16 * (i * sums.stride + j); };
    each_sum<As, Bs>([&](auto tile, int i, int j) {
      if (sums.start == SumStart::zero) return Tiles::template zero<tile.value>();
      Tiles::template load<tile.value>(at(i, j), stride);
    });
    add_tile_products<Tiles, As, Bs>(a, b, steps);
    each_sum<As, Bs>(
        [&](auto tile, int i, int j) { Tiles::template store<tile.value>(at(i, j), stride); });
  }
}

// Calls product(i, j, As, Bs) for blocks of up to two by two that cover a_tiles x b_tiles.
template <typename Product>
inline void each_tile_product(int64_t a_tiles, int64_t b_tiles, const Product& product) {
  for (int64_t i = 0; i < a_tiles; i += 2) {
    for (int64_t j = 0; j < b_tiles; j += 2) {
      const bool two_a = i + 1 < a_tiles;
      const bool two_b = j + 1 < b_tiles;
      if (two_a && two_b) product(i, j, TileIndex<2>(), TileIndex<2>());
      if (two_a && !two_b) product(i, j, TileIndex<2>(), TileIndex<1>());
      if (!two_a && two_b) product(i, j, TileIndex<1>(), TileIndex<2>());
      if (!two_a && !two_b) product(i, j, TileIndex<1>(), TileIndex<1>());
    }
  }
}

}  // namespace
}  // namespace optima::kernels
