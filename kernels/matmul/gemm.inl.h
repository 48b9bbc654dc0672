// Many activation rows: panels of 16 weight rows are unpacked once to a tile of bytes that stays
// in the cache, and a register-blocked kernel sweeps the tile over all activation rows.
//
//   for 64 weight rows                 (their tiles stay in L2)
//     for a stretch of <= 1024 k       (a panel's tile and some activation columns fit in L1)
//       unpack 4 panels
//       for a block of activation rows (stays in L2 while the panels pass over it)
//         for a panel, for kColumns activation rows: Kernel::run
//
// Unpacking costs about as much as four activation rows. Kernel is the part that differs between
// instruction sets (tile_avx2.inl.h, tile_dot.inl.h).
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/matmul/gemv.inl.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/panel.h"
#include "kernels/quant/unpack.inl.h"

namespace optima::kernels {
namespace {

// Tables by weight type have as many places.
constexpr int kTypeIdEnd = 40;
using RangeFn = void (*)(const MatmulArgs& args, int64_t n_begin, int64_t n_end);

constexpr int kPanelsInGroup = 4;
constexpr int64_t kStretchBlocks = 1024 / kActivationBlock;
constexpr int64_t kColumnBytes = 128 * 1024;  // activations that stay in L2

// 16 weight rows x 32 k. codes[j] holds k = 4j .. 4j + 3 of each row, row after row.
// "Planes" tiles (8-bit codes without VNNI): 8 rows, low nibbles, then the 8 rows' high nibbles.
struct alignas(64) TileBlock {
  uint8_t codes[8][64];
  float d[2][16];            // of the block, or of its halves
  float c[2][16];            // constants of the block, or of its halves
  int16_t factor[2][16][2];  // blocks of 16: integer factor of each half, twice
};

// What a tile looks like; a kernel is compiled for each combination in use.
struct TileTraits {
  int sub;  // 32 or 16
  bool has_min;
  bool planes;
};

struct TileArgs {
  const TileBlock* tile;
  int64_t blocks;
  const QuantisedRows* x;
  int64_t m;            // first activation row
  int64_t first_block;  // of the stretch, within a row
  int offset;
  float* out;  // [m, n] of the tile's first row
  int64_t out_stride;
  int rows;        // rows of the tile to store
  int accumulate;  // 1: add to out, 0: overwrite
};

constexpr int64_t gemm_scratch_bytes() {
  return kPanelsInGroup * kStretchBlocks * static_cast<int64_t>(sizeof(TileBlock)) + 64;
}

TileBlock* tiles_in(void* scratch) {
  const auto at = reinterpret_cast<uintptr_t>(scratch);
  return reinterpret_cast<TileBlock*>((at + 63) / 64 * 64);
}

template <typename F, typename Kernel>
struct Unpacker {
  using V = typename Kernel::V;
  static constexpr bool kPlanes = F::kSigned8 && !Kernel::kWideCodes;
  static constexpr int kRows = kPlanes ? 8 : kPanelRows;

  // Scales, constants and factors of one row and group.
  static void put_scales(const uint8_t* group, int row, int count, TileBlock* tile) {
    if constexpr (F::kSub == 32) {
      typename V::Floats d_vector;
      [[maybe_unused]] typename V::Floats c_vector;
      F::template scales<8>(group, d_vector, c_vector);
      float d[8];
      V::store_floats(d, d_vector);
      for (int i = 0; i < count; ++i) tile[i].d[0][row] = d[i];
      if constexpr (F::kHasMin) {
        float c[8];
        V::store_floats(c, c_vector);
        for (int i = 0; i < count; ++i) tile[i].c[0][row] = c[i];
      }
    } else {
      const float d = F::scale(group);
      uint64_t words[2];
      int8_t factor[16];
      F::factors(group, words);
      memcpy(factor, words, sizeof factor);
      for (int i = 0; i < 16; ++i) {
        TileBlock& block = tile[i / 2];
        block.d[i % 2][row] = Kernel::kWideCodes ? d * static_cast<float>(factor[i]) : d;
        block.factor[i % 2][row][0] = block.factor[i % 2][row][1] = factor[i];
      }
      if constexpr (F::kHasMin) {
        typename V::Floats c_vector[2];
        float c[16];
        F::mins(group, c_vector);
        for (int i = 0; i < 2; ++i) V::store_floats(c + 8 * i, c_vector[i]);
        for (int i = 0; i < 16; ++i) tile[i / 2].c[i % 2][row] = c[i];
      }
    }
  }

  template <int I>
  static void put_codes(const uint8_t* const group[8], int half, TileBlock* tile) {
    typename V::Bytes rows[8];
    typename V::Bytes columns[8];
    for (int r = 0; r < 8; ++r) rows[r] = F::template codes<I>(group[r]);
    V::transpose(rows, columns);
    for (int j = 0; j < 8; ++j) {
      typename V::Bytes codes = columns[j];
      if constexpr (F::kSigned8 && !Kernel::kSignedCodes) codes = V::bit_xor(codes, V::fill(-128));
      if constexpr (kPlanes) {
        V::store(tile[I].codes[j], V::bit_and(codes, V::fill(15)));
        V::store(tile[I].codes[j] + 32, V::bit_and(V::template shift<4>(codes), V::fill(15)));
      } else {
        V::store(tile[I].codes[j] + 32 * half, codes);
      }
    }
  }

  template <int... I>
  static void put_group(const uint8_t* const group[8], int half, int count, TileBlock* tile,
                        Indices<I...>) {
    ((I < count ? put_codes<I>(group, half, tile) : void()), ...);
    for (int r = 0; r < 8; ++r) put_scales(group[r], 8 * half + r, count, tile);
  }

  // `rows` rows from `weights` on, blocks [0, blocks) of each. Rows that do not exist repeat the
  // last one: their results are never stored.
  static void run(const uint8_t* weights, int64_t stride, int rows, int64_t blocks,
                  TileBlock* tile) {
    for (int half = 0; half < kRows / 8; ++half) {
      const uint8_t* row[8];
      for (int r = 0; r < 8; ++r) {
        const int index = 8 * half + r < rows ? 8 * half + r : rows - 1;
        row[r] = weights + index * stride;
      }
      int64_t b = 0;
      for (; b + kGroupBlocks <= blocks; b += kGroupBlocks) {
        put_group(row, half, kGroupBlocks, tile + b, FirstIndices<8>{});
        for (const uint8_t*& r : row) r += F::kBytes;
      }
      if constexpr (!F::kWhole) {
        if (b == blocks) continue;
        const auto count = static_cast<int>(blocks - b);
        uint8_t tail[8][F::kBytes] = {};
        for (int r = 0; r < 8; ++r) {
          memcpy(tail[r], row[r], static_cast<size_t>(count) * F::kBlockBytes);
          row[r] = tail[r];
        }
        put_group(row, half, count, tile + b, FirstIndices<8>{});
      }
    }
  }
};

// How many bits of a tile's bytes codes take; all of them where they stand for signed numbers.
constexpr int code_bits(WeightType type) {
  switch (type) {
    case WeightType::q2_k:
      return 2;
    case WeightType::q3_k:
      return 3;
    case WeightType::q4_0:
    case WeightType::q4_1:
    case WeightType::q4_k:
      return 4;
    case WeightType::q5_0:
    case WeightType::q5_1:
    case WeightType::q5_k:
      return 5;
    case WeightType::q6_k:
      return 6;
    default:
      return 8;
  }
}

// Tiles from rows as the file has them.
template <typename Kernel, WeightType T>
struct FileRows {
  using F = Format<typename Kernel::V, T>;
  using Unpack = Unpacker<F, Kernel>;
  static constexpr TileTraits kTraits = {F::kSub, F::kHasMin, Unpack::kPlanes};
  static constexpr int kOffset = !F::kSigned8 ? F::kOffset : Kernel::kSignedCodes ? 0 : 128;
  static constexpr int kCodeBits = code_bits(T);
  static constexpr int kRows = Unpack::kRows;  // of a tile

  static int64_t stride(int64_t blocks) {
    return blocks / kGroupBlocks * F::kBytes +
           blocks % kGroupBlocks * static_cast<int64_t>(F::kBlockBytes);
  }
  // `count` blocks of `rows` rows; `block` is a multiple of eight.
  static void unpack(const MatmulArgs& args, int64_t row, int rows, int64_t block, int64_t count,
                     TileBlock* tile) {
    const int64_t bytes = stride(args.k / kActivationBlock);
    Unpack::run(
        static_cast<const uint8_t*>(args.weights) + row * bytes + block / kGroupBlocks * F::kBytes,
        bytes, rows, count, tile);
  }
};

// The blocks of a row are cut into stretches of equal length, whole groups each.
inline int64_t stretch_blocks(int64_t blocks, int64_t most = kStretchBlocks) {
  const int64_t stretches = (blocks + most - 1) / most;
  return ((blocks + stretches - 1) / stretches + 7) / 8 * 8;
}

template <typename Kernel, TileTraits Traits>
inline void sweep_columns(TileArgs args, int64_t m_end) {
  for (; args.m + Kernel::kColumns <= m_end; args.m += Kernel::kColumns) {
    Kernel::template run<Traits, Kernel::kColumns>(args);
  }
  Kernel::template run_rest<Traits>(args, static_cast<int>(m_end - args.m));
}

template <typename Kernel, typename Rows>
void gemm(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  constexpr int64_t kRows = Rows::kRows;
  constexpr int64_t kGroupRows = kRows * kPanelsInGroup;
  constexpr int64_t kStepRows = kRows * Kernel::kPanels;
  const int64_t blocks = args.k / kActivationBlock;
  const int64_t stretch = stretch_blocks(blocks);
  const int64_t columns =
      kColumnBytes / (stretch * kActivationBlock * Kernel::kColumns) * Kernel::kColumns;
  TileBlock* tiles = tiles_in(args.scratch);

  for (int64_t n = n_begin; n < n_end; n += kGroupRows) {
    const int64_t group_end = n + kGroupRows < n_end ? n + kGroupRows : n_end;
    for (int64_t block = 0; block < blocks; block += stretch) {
      const int64_t count = blocks - block < stretch ? blocks - block : stretch;
      for (int64_t row = n; row < group_end; row += kRows) {
        const auto rows = static_cast<int>(group_end - row < kRows ? group_end - row : kRows);
        Rows::unpack(args, row, rows, block, count, tiles + (row - n) / kRows * kStretchBlocks);
      }
      for (int64_t m = 0; m < args.m; m += columns) {
        const int64_t m_end = m + columns < args.m ? m + columns : args.m;
        for (int64_t row = n; row < group_end; row += kStepRows) {
          const int64_t rest = group_end - row;
          const auto rows = static_cast<int>(rest < kStepRows ? rest : kStepRows);
          const TileArgs tile = {tiles + (row - n) / kRows * kStretchBlocks,
                                 count,
                                 &args.xq,
                                 m,
                                 block,
                                 Rows::kOffset,
                                 args.out + row,
                                 args.out_stride,
                                 rows,
                                 block == 0 ? 0 : 1};
          sweep_columns<Kernel, Rows::kTraits>(tile, m_end);
        }
      }
    }
  }
}

}  // namespace
}  // namespace optima::kernels
