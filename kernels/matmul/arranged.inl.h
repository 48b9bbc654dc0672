// Quantised weights times many activation rows by VNNI's instruction, in a form of activations
// that suits it: seven rows side by side, block after block, so that one piece of memory holds all
// that a block needs. Codes stay in registers and meet the rows' quads where they lie, as the
// instruction's operand in memory: no broadcasts stand between the products. Codes of all types
// are unsigned with an offset of 128, so that what starts the sums can be computed beforehand:
//   Σ (code - 128) q = -128 Σ q + Σ code q
//
//   for 128 weight rows
//     for a stretch of <= 2048 k      (two of gemm.inl.h, each summed by itself)
//       unpack 8 panels           (they stay in L2)
//       for seven rows            (they stay in L1 while the panels pass over them)
//         for two panels: ArrangedDot::run
//
// The numbers and their order are those of tile_dot.inl.h and panel_dot.inl.h, so the products are
// equal to theirs bit for bit.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/matmul/wide_table.inl.h"

namespace optima::kernels {
namespace {

// Two panels times seven rows: 14 sums of int32, 14 of fp32, two vectors of codes.
constexpr int kArrangedRows = 7;
constexpr int kArrangedPanels = 2;

constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a unit is its last bit
constexpr int32_t kMagicBits = 0x4b400000;
constexpr int64_t kCoarseBlocks = 2;  // that share a scale of weights in coarse.inl.h

// A block of 32 k of seven activation rows. What rows that do not exist hold does not matter.
struct ArrangedBlock {
  int8_t q[kArrangedRows][kActivationBlock];
  float scale[kArrangedRows];
  int32_t start[2][kArrangedRows];  // kMagicBits - 128 Σ q of each half
  int32_t whole[kArrangedRows];     // of both
  float sum_x[kArrangedRows];
  float sum_x16[2][kArrangedRows];
  float lift[kArrangedRows];  // in the first of kCoarseBlocks: -kMagic Σ scale of them
};

static_assert(sizeof(ArrangedBlock) <= kArrangedRows * kArrangedBytesMax);

constexpr int kArrangedOffset = 128;
constexpr int64_t kArrangedGroup = 8;  // panels
constexpr int64_t kArrangedStretch = 2 * kStretchBlocks;

// MatmulKernel::arrange_rows: [rows / 7, rounded up][k / 32] ArrangedBlock. Quantise is a row of
// quantise_rows_variants().
template <QuantiseRowsFn Quantise>
void arrange_sevens(const float* x, int64_t k, int64_t row_begin, int64_t row_end, void* arranged) {
  constexpr int64_t kPiece = 32;  // blocks
  int8_t q[kPiece * kActivationBlock];
  float scale[kPiece];
  float sum_x[kPiece];
  float sum_x16[2 * kPiece];
  int16_t pairs[2 * kPiece];
  int16_t pairs16[4 * kPiece];
  const int64_t blocks = k / kActivationBlock;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t r = row % kArrangedRows;
    ArrangedBlock* to = static_cast<ArrangedBlock*>(arranged) + row / kArrangedRows * blocks;
    for (int64_t first = 0; first < blocks; first += kPiece) {
      const int64_t count = blocks - first < kPiece ? blocks - first : kPiece;
      const int64_t values = count * kActivationBlock;
      Quantise(x + row * k + first * kActivationBlock, values, 0, 1,
               {q, scale, sum_x, sum_x16, pairs, pairs16, values});
      for (int64_t b = 0; b < count; ++b, ++to) {
        memcpy(to->q[r], q + b * kActivationBlock, kActivationBlock);
        to->scale[r] = scale[b];
        to->sum_x[r] = sum_x[b];
        for (int part = 0; part < 2; ++part) {
          const int16_t* pair = pairs16 + 2 * (2 * b + part);
          to->start[part][r] = kMagicBits - kArrangedOffset * (pair[0] + pair[1]);
          to->sum_x16[part][r] = sum_x16[2 * b + part];
        }
        to->whole[r] = to->start[0][r] + (to->start[1][r] - kMagicBits);
        ArrangedBlock* group = to - b % kCoarseBlocks;
        const float sum = b % kCoarseBlocks == 0 ? 0.0f : group->lift[r];
        group->lift[r] = sum - kMagic * scale[b];
      }
    }
  }
}

template <int Parts>
struct TileConstants {
  float c[Parts][16];
};
template <>
struct TileConstants<0> {};

// A TileBlock whose codes have the offset 128, and only what its type has.
template <TileTraits Traits>
struct alignas(64) ArrangedTile : TileConstants<Traits.has_min ? 32 / Traits.sub : 0> {
  uint8_t codes[8][64];
  float d[32 / Traits.sub][16];
};

// Where products belong: `out` is that of the first activation row and the first panel's first
// weight row.
struct ArrangedTarget {
  float* out;
  int64_t stride;
  int rows;        // of the panels, to store
  int accumulate;  // 1: add to out, 0: overwrite

  // It is not in the cache, and is read where sums are added.
  template <int P, int C>
  void ask_for() const {
    for (int c = 0; c < C; ++c) {
      for (int p = 0; p < P; ++p) __builtin_prefetch(out + c * stride + p * kPanelRows);
    }
  }
  template <typename V, int P, int C>
  void store(const typename V::WideFloats (&sum)[P][C], int add) const {
    for (int p = 0; p < P; ++p) {
      const int rest = rows - p * kPanelRows;
      const int count = rest < kPanelRows ? rest : kPanelRows;
      for (int c = 0; c < C; ++c) {
        float* to = out + c * stride + p * kPanelRows;
        typename V::WideFloats value = sum[p][c];
        if (add != 0) value = V::wide_add_first(value, to, count);
        V::wide_store_first(to, value, count);
      }
    }
  }
};

// Blocks of a group of activation rows, which exact products sum `part` at a time.
struct ArrangedBlocks {
  const ArrangedBlock* x;
  int64_t count, part;
};

// The integer sums of Quads quads: of P panels' codes and of C rows, of which q is the first's
// first quad, from `start` on.
template <typename V, int Quads, int P, int C>
inline __attribute__((always_inline)) void dot_quads(const uint8_t* const (&codes)[P],
                                                     const int8_t* q, const int32_t* start,
                                                     typename V::Wide (&dot)[P][C]) {
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < P; ++p) dot[p][c] = V::wide_broadcast(start + c);
  }
#pragma GCC unroll 8
  for (int j = 0; j < Quads; ++j) {
    typename V::Wide w[P];
    for (int p = 0; p < P; ++p) w[p] = V::wide_load(codes[p] + 64 * j);
#pragma GCC unroll 7
    for (int c = 0; c < C; ++c) {
      const int8_t* quad = q + c * kActivationBlock + 4 * j;
      for (int p = 0; p < P; ++p) dot[p][c] = V::wide_add_dot_quad(dot[p][c], w[p], quad);
    }
  }
}

template <typename Vector, TileTraits Traits>
struct ArrangedDot {
  using V = Vector;
  using Wide = typename V::Wide;
  using WideFloats = typename V::WideFloats;
  using Piece = ArrangedTile<Traits>;
  static constexpr int kParts = 32 / Traits.sub;
  static constexpr int kQuads = 8 / kParts;

  // Of an unpacked panel.
  static constexpr int64_t pieces(int64_t blocks) { return blocks; }

  static void put_panel(const TileBlock* blocks, int64_t count, int offset, Piece* to) {
    const Wide more = V::wide_fill(static_cast<int8_t>(kArrangedOffset - offset));
    for (int64_t b = 0; b < count; ++b, ++blocks, ++to) {
      for (int j = 0; j < 8; ++j) {
        V::wide_store(to->codes[j], V::wide_add_bytes(V::wide_load(blocks->codes[j]), more));
      }
      memcpy(to->d, blocks->d, sizeof to->d);
      if constexpr (Traits.has_min) memcpy(to->c, blocks->c, sizeof to->c);
    }
  }

  // Sums of P panels, `next` pieces apart, and of C rows of a group, from `first` on.
  template <int P, int C>
  struct Sums {
    const Piece* piece;
    int64_t next;
    int first;
    WideFloats sum[P][C];

    void add_block(const ArrangedBlock& x, int64_t b) {
      for (int part = 0; part < kParts; ++part) add_part(x, b, part);
    }

    void add_part(const ArrangedBlock& x, int64_t b, int part) {
      const uint8_t* codes[P];
      for (int p = 0; p < P; ++p) codes[p] = piece[p * next + b].codes[part * kQuads];
      Wide dot[P][C];
      dot_quads<V, kQuads>(codes, x.q[first] + 4 * part * kQuads,
                           (kParts == 1 ? x.whole : x.start[part]) + first, dot);
      const WideFloats magic = V::wide_set(kMagic);
      for (int p = 0; p < P; ++p) {
        const Piece& at = piece[p * next + b];
        const WideFloats d = V::wide_load_floats(at.d[part]);
        for (int c = 0; c < C; ++c) {
          const WideFloats step = V::wide_mul(d, V::wide_set(x.scale[first + c]));
          const WideFloats product = V::wide_sub(V::wide_as_floats(dot[p][c]), magic);
          sum[p][c] = V::wide_fma(product, step, sum[p][c]);
        }
        if constexpr (Traits.has_min) {
          const WideFloats constant = V::wide_load_floats(at.c[part]);
          const float* sum_x = (kParts == 1 ? x.sum_x : x.sum_x16[part]) + first;
          for (int c = 0; c < C; ++c) {
            sum[p][c] = V::wide_fma(constant, V::wide_set(sum_x[c]), sum[p][c]);
          }
        }
      }
    }
  };

  template <int P, int C>
  [[gnu::noinline]] static void run(const Piece* piece, int64_t next, const ArrangedBlocks& blocks,
                                    int first, const ArrangedTarget& target) {
    target.ask_for<P, C>();
    Sums<P, C> sums;
    sums.piece = piece;
    sums.next = next;
    sums.first = first;
    for (int64_t b = 0; b < blocks.count; b += blocks.part) {
      for (auto& panel : sums.sum) {
        for (WideFloats& sum : panel) sum = V::wide_zero();
      }
      const int64_t end = b + blocks.part < blocks.count ? b + blocks.part : blocks.count;
      for (int64_t i = b; i < end; ++i) sums.add_block(blocks.x[i], i);
      target.store<V>(sums.sum, b == 0 ? target.accumulate : 1);
    }
  }
};

template <typename Dot, typename Rows>
class ArrangedGemm {
 public:
  explicit ArrangedGemm(const MatmulArgs& args)
      : args_(args),
        x_(static_cast<const ArrangedBlock*>(args.arranged)),
        blocks_(args.k / kActivationBlock),
        part_(stretch_blocks(blocks_)),
        stage_(tiles_in(args.scratch)),
        pieces_(reinterpret_cast<Piece*>(stage_ + kArrangedStretch)) {}

  void run(int64_t n_begin, int64_t n_end) const {
    constexpr int64_t kGroupRows = kArrangedGroup * kPanelRows;
    const int64_t stretch = 2 * part_;
    for (int64_t n = n_begin; n < n_end; n += kGroupRows) {
      const int64_t end = n + kGroupRows < n_end ? n + kGroupRows : n_end;
      for (int64_t block = 0; block < blocks_; block += stretch) {
        const int64_t count = blocks_ - block < stretch ? blocks_ - block : stretch;
        for (int64_t row = n; row < end; row += kPanelRows) {
          Rows::unpack(args_, row, rows_from(row, end, 1), block, count, stage_);
          Dot::put_panel(stage_, count, Rows::kOffset,
                         pieces_ + (row - n) / kPanelRows * Dot::pieces(count));
        }
        for (int64_t m = 0; m < args_.m; m += kArrangedRows) multiply(n, end, block, count, m);
      }
    }
  }

 private:
  using Piece = typename Dot::Piece;

  // Rows of the next `panels` panels that exist.
  static int rows_from(int64_t row, int64_t end, int panels) {
    return static_cast<int>(end - row < panels * kPanelRows ? end - row : panels * kPanelRows);
  }

  // The group of weight rows times up to seven activation rows from m on.
  void multiply(int64_t n, int64_t n_end, int64_t block, int64_t count, int64_t m) const {
    const ArrangedBlocks blocks = {x_ + m / kArrangedRows * blocks_ + block, count, part_};
    const int64_t columns = args_.m - m;
    const int64_t next = Dot::pieces(count);
    const Piece* pieces = pieces_;
    int panels = kArrangedPanels;
    for (int64_t row = n; row < n_end; row += panels * kPanelRows, pieces += panels * next) {
      if (columns < kArrangedRows || n_end - row <= kPanelRows) panels = 1;
      const ArrangedTarget target = {args_.out + m * args_.out_stride + row, args_.out_stride,
                                     rows_from(row, n_end, panels), block == 0 ? 0 : 1};
      if (columns < kArrangedRows) {
        run_rest(pieces, blocks, static_cast<int>(columns), target);
      } else if (panels == 1) {
        Dot::template run<1, kArrangedRows>(pieces, next, blocks, 0, target);
      } else {
        Dot::template run<kArrangedPanels, kArrangedRows>(pieces, next, blocks, 0, target);
      }
    }
  }

  // A panel and the last rows, fewer than seven.
  static void run_rest(const Piece* piece, const ArrangedBlocks& blocks, int rows,
                       ArrangedTarget target) {
    int first = 0;
    const auto step = [&]<int C>(Indices<C>) {
      for (; rows - first >= C; first += C, target.out += C * target.stride) {
        Dot::template run<1, C>(piece, 0, blocks, first, target);
      }
    };
    step(Indices<4>{});
    step(Indices<2>{});
    step(Indices<1>{});
  }

  const MatmulArgs& args_;
  const ArrangedBlock* x_;
  int64_t blocks_;    // of 32 k in a row
  int64_t part_;      // blocks that the other kernels sum at a time
  TileBlock* stage_;  // a panel's stretch
  Piece* pieces_;     // [panels][pieces of the stretch]
};

constexpr int64_t arranged_scratch_bytes() {
  constexpr auto kTile = static_cast<int64_t>(sizeof(ArrangedTile<TileTraits{16, true, false}>));
  return kArrangedStretch * static_cast<int64_t>(sizeof(TileBlock)) +
         kArrangedGroup * kArrangedStretch * kTile + 64;
}

// For the table (wide_table.inl.h).
template <typename Vector>
struct SevensGemm {
  using V = Vector;
  template <typename Rows>
  static void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
    ArrangedGemm<ArrangedDot<V, Rows::kTraits>, Rows>(args).run(n_begin, n_end);
  }
};

}  // namespace
}  // namespace optima::kernels
