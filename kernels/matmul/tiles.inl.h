// Quantised weights times many activation rows where the CPU multiplies tiles of bfloat16. Weights
// are unpacked to floats with their scales in them and rounded, activations are rounded before
// (MatmulArgs::arranged), and the sums of a whole stretch of k stay in the tiles as fp32: nothing
// is scaled between two products, which is what bounds kernels of int8.
//
//   for 256 weight rows
//     for a stretch of <= 2048 k
//       unpack 16 panels           (they stay in L2)
//       for 32 activation rows, for 32 weight rows: two tiles by two
//
// Shorter stretches, of which the activations would stay in L1, cost more in loads and stores of
// sums than they save: 12 to 13 ns a product of tiles became 16 to 20 (7.4 is its own time).
//
// Rounding costs 2^-9 of a weight and of an activation at the most, in RMS 0.17 % each, where int8
// activations with a scale for 32 cost 0.53 % of a product. Tiles is Intel's AMX (vec/amx.h) or its
// simulation. Intel's Optimization Reference Manual, "Intel AMX", has the rules for the order of
// loops and loads.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/matmul/gemm.inl.h"
#include "kernels/matmul/wide_table.inl.h"
#include "kernels/vec/tile_products.inl.h"

namespace optima::kernels {
namespace {

constexpr int64_t kWidePanels = 16;               // of a group
constexpr int64_t kWideBlocksMax = 64;            // of a stretch; a tile is a block of 32
constexpr int64_t kWideColumns = 2 * kPanelRows;  // activation rows at a time

constexpr int64_t wide_scratch_bytes() {
  return kWidePanels * kWideBlocksMax * kTileBytes +
         kWideBlocksMax * static_cast<int64_t>(sizeof(TileBlock)) + 4 * kTileBytes + 64;
}

// A block of sixteen weight rows as a tile: its sixteen pairs of k become the tile's rows, each the
// pairs of all weight rows. A vector holds pairs of eight weight rows.
template <typename V, typename Tiles, TileTraits Traits>
struct Widener {
  using WideFloats = typename V::WideFloats;

  // What the weights of eight rows are made with: each row's numbers twice.
  struct Numbers {
    WideFloats scale, constant;
  };
  template <int Half>
  static Numbers numbers(const TileBlock& block, int part, const WideFloats& minus_offset) {
    const WideFloats scale = V::template wide_twice<Half>(block.d[part]);
    if constexpr (!Traits.has_min) return {scale, V::wide_mul(minus_offset, scale)};
    return {scale, V::wide_fma(minus_offset, scale, V::template wide_twice<Half>(block.c[part]))};
  }

  // Codes 2 * Pair and 2 * Pair + 1 of each quad.
  template <int Pair>
  static void put_pair(const uint8_t* quads, const Numbers& low, const Numbers& high, uint8_t* to) {
    const WideFloats first = V::template wide_code_pairs<0, Pair>(quads);
    const WideFloats second = V::template wide_code_pairs<1, Pair>(quads);
    Tiles::round(V::wide_fma(first, low.scale, low.constant),
                 V::wide_fma(second, high.scale, high.constant), to);
  }

  static void run(const TileBlock& block, int offset, uint8_t* tile) {
    constexpr int kParts = 32 / Traits.sub;
    constexpr int kQuads = 8 / kParts;
    const WideFloats minus_offset = V::wide_set(static_cast<float>(-offset));
    for (int part = 0; part < kParts; ++part) {
      const Numbers low = numbers<0>(block, part, minus_offset);
      const Numbers high = numbers<1>(block, part, minus_offset);
      for (int quad = part * kQuads; quad < (part + 1) * kQuads; ++quad) {
        put_pair<0>(block.codes[quad], low, high, tile + 2 * quad * 64);
        put_pair<1>(block.codes[quad], low, high, tile + (2 * quad + 1) * 64);
      }
    }
  }
};

template <typename V, typename Tiles, typename Rows>
class WideGemm {
 public:
  explicit WideGemm(const MatmulArgs& args)
      : args_(args),
        blocks_(args.k / kActivationBlock),
        words_(reinterpret_cast<uint8_t*>(tiles_in(args.scratch))),
        edge_(words_ + kWidePanels * kWideBlocksMax * kTileBytes),
        stage_(reinterpret_cast<TileBlock*>(edge_ + 4 * kTileBytes)) {}

  void run(int64_t n_begin, int64_t n_end) const {
    constexpr int64_t kGroupRows = kWidePanels * kPanelRows;
    const int64_t stretch = stretch_blocks(blocks_, kWideBlocksMax);
    Tiles::begin();
    for (int64_t n = n_begin; n < n_end; n += kGroupRows) {
      const Part group = {n, n + kGroupRows < n_end ? n + kGroupRows : n_end};
      for (int64_t block = 0; block < blocks_; block += stretch) {
        const Part k = {block, block + stretch < blocks_ ? block + stretch : blocks_};
        unpack(group, k);
        for (int64_t m = 0; m < args_.m; m += kWideColumns) run_columns(group, k, m);
      }
    }
    Tiles::end();
  }

 private:
  struct Part {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  void unpack(Part n, Part k) const {
    uint8_t* to = words_;
    for (int64_t row = n.begin; row < n.end; row += kPanelRows) {
      const auto rows = static_cast<int>(n.end - row < kPanelRows ? n.end - row : kPanelRows);
      Rows::unpack(args_, row, rows, k.begin, k.size(), stage_);
      for (int64_t b = 0; b < k.size(); ++b, to += kTileBytes) {
        Widener<V, Tiles, Rows::kTraits>::run(stage_[b], Rows::kOffset, to);
      }
    }
  }

  // All weight rows of the group times up to 32 activation rows from m on.
  void run_columns(Part n, Part k, int64_t m) const {
    const uint8_t* x = static_cast<const uint8_t*>(args_.arranged) +
                       (m / kPanelRows * blocks_ + k.begin) * kTileBytes;
    const int64_t next_w = k.size() * kTileBytes;
    const int64_t m_tiles = args_.m - m > kPanelRows ? 2 : 1;
    const int64_t n_tiles = (n.size() + kPanelRows - 1) / kPanelRows;
    each_tile_product(m_tiles, n_tiles, [&](int64_t /*i*/, int64_t j, auto ms, auto ns) {
      const Place place = {m, n.begin + j * kPanelRows, n.end, k.begin != 0};
      each_sum<ms.value, ns.value>(
          [&](auto tile, int row, int column) { begin_sum<tile.value>(place, row, column); });
      add_tile_products<Tiles, ms.value, ns.value>({x, blocks_ * kTileBytes, kTileBytes},
                                                   {words_ + j * next_w, next_w, kTileBytes},
                                                   k.size());
      each_sum<ms.value, ns.value>(
          [&](auto tile, int row, int column) { end_sum<tile.value>(place, row, column); });
    });
  }

  // Where products belong: from activation row m and weight row n on; n_end bounds what exists.
  struct Place {
    int64_t m, n, n_end;
    bool accumulate;
  };

  // The tile of sums at (i, j) of the place, and how much of it exists.
  struct Target {
    float* out;
    int64_t rows, columns;
    bool whole() const { return rows == kPanelRows && columns == kPanelRows; }
  };
  Target target(const Place& place, int i, int j) const {
    const int64_t m = place.m + i * kPanelRows;
    const int64_t n = place.n + j * kPanelRows;
    const int64_t rows = args_.m - m;
    const int64_t columns = place.n_end - n;
    return {args_.out + m * args_.out_stride + n, rows < kPanelRows ? rows : kPanelRows,
            columns < kPanelRows ? columns : kPanelRows};
  }
  int64_t out_stride() const { return args_.out_stride * static_cast<int64_t>(sizeof(float)); }

  template <int Tile>
  void begin_sum(const Place& place, int i, int j) const {
    if (!place.accumulate) return Tiles::template zero<Tile>();
    const Target at = target(place, i, j);
    if (at.whole()) return Tiles::template load<Tile>(at.out, out_stride());
    uint8_t* edge = edge_ + Tile * kTileBytes;
    for (int64_t row = 0; row < at.rows; ++row) {
      memcpy(edge + row * 64, at.out + row * args_.out_stride,
             static_cast<size_t>(at.columns) * sizeof(float));
    }
    Tiles::template load<Tile>(edge, 64);
  }
  template <int Tile>
  void end_sum(const Place& place, int i, int j) const {
    const Target at = target(place, i, j);
    if (at.whole()) return Tiles::template store<Tile>(at.out, out_stride());
    uint8_t* edge = edge_ + Tile * kTileBytes;
    Tiles::template store<Tile>(edge, 64);
    for (int64_t row = 0; row < at.rows; ++row) {
      memcpy(at.out + row * args_.out_stride, edge + row * 64,
             static_cast<size_t>(at.columns) * sizeof(float));
    }
  }

  const MatmulArgs& args_;
  int64_t blocks_;  // of 32 k in a row
  uint8_t* words_;  // tiles of weights: [panels][blocks of the stretch]
  uint8_t* edge_;
  TileBlock* stage_;
};

// MatmulKernel::arrange_rows: [rows / 16, rounded up][k / 32][16][32], so that the tile of 16 rows
// and a block is one piece. What rows that do not exist hold does not matter.
template <typename V, typename Tiles>
void round_wide_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                     void* arranged) {
  const int64_t blocks = k / kActivationBlock;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* from = x + row * k;
    uint8_t* to = static_cast<uint8_t*>(arranged) + row / kPanelRows * blocks * kTileBytes +
                  row % kPanelRows * 64;
    for (int64_t b = 0; b < blocks; ++b, from += kActivationBlock, to += kTileBytes) {
      Tiles::round(V::wide_load_floats(from), V::wide_load_floats(from + 16), to);
    }
  }
}

// For the table (wide_table.inl.h).
template <typename Vector, typename Tiles>
struct TileGemm {
  using V = Vector;
  template <typename Rows>
  static void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
    WideGemm<V, Tiles, Rows>(args).run(n_begin, n_end);
  }
};

}  // namespace
}  // namespace optima::kernels
