// Products of panels (panel.h): making them, few activation rows straight from them, and the tiles
// of gemm.inl.h made of them for many.
#pragma once

#include <string.h>

#include "kernels/matmul/gemm.inl.h"
#include "kernels/matmul/panel.h"

namespace optima::kernels {
namespace {

constexpr int kPanelFewRows = 24;  // from more rows on tiles pay
// One activation row may meet so many panels side by side, block by block: the memory then sees a
// stream for each. More activation rows would not leave registers for their sums.
constexpr int kPanelsAtOnce = 4;
constexpr int panels_at_most(int64_t columns) {
  return columns == 1 ? kPanelsAtOnce : 1;
}

// ---- making panels ----

// Tiles of sixteen rows of whole bytes, whatever an instruction set's own micro-kernel would like.
template <typename Vector>
struct WideShape {
  using V = Vector;
  static constexpr bool kWideCodes = true;
  static constexpr bool kSignedCodes = false;
};

template <typename Vector, WeightType T>
struct PanelPacker {
  static constexpr PanelTraits kTraits = panel_traits(T);
  using Rows = FileRows<WideShape<Vector>, T>;
  using F = typename Rows::F;

  static void put_codes(const TileBlock& tile, uint8_t* out) {
    if constexpr (kTraits.code_bits == 8) {
      memcpy(out, tile.codes, sizeof tile.codes);
      return;
    }
    const typename Vector::Bytes mask = Vector::fill(15);
    for (int i = 0; i < 8; ++i) {
      const uint8_t* codes = tile.codes[0] + 32 * i;
      const typename Vector::Bytes low = Vector::bit_and(Vector::load(codes), mask);
      const typename Vector::Bytes high =
          Vector::bit_and(Vector::load(codes + sizeof tile.codes / 2), mask);
      Vector::store(out + 32 * i, Vector::bit_or(low, Vector::template shift<-4>(high)));
    }
    put_rest(tile, out + 4 * 64);
  }

  // Bits 4 (and 5) of the quads First + J, at bit (two) J of their byte.
  template <int First, int... J>
  static typename Vector::Bytes rest_bits(const TileBlock& tile, int half, Indices<J...>) {
    constexpr int kWidth = kTraits.code_bits - 4;
    const typename Vector::Bytes mask = Vector::fill((1 << kWidth) - 1);
    typename Vector::Bytes bits = Vector::fill(0);
    const auto add = [&]<int I>(Indices<I>) __attribute__((always_inline)) {
      const typename Vector::Bytes code = Vector::load(tile.codes[First + I] + 32 * half);
      const typename Vector::Bytes rest = Vector::bit_and(Vector::template shift<4>(code), mask);
      bits = Vector::bit_or(bits, Vector::template shift<-kWidth * I>(rest));
    };
    (add(Indices<J>{}), ...);
    return bits;
  }

  // The bits above the low four.
  static void put_rest(const TileBlock& tile, uint8_t* out) {
    for (int half = 0; half < 2; ++half, out += 32) {
      if constexpr (kTraits.code_bits == 5) {
        Vector::store(out, rest_bits<0>(tile, half, FirstIndices<8>{}));
      } else if constexpr (kTraits.code_bits == 6) {
        Vector::store(out, rest_bits<0>(tile, half, FirstIndices<4>{}));
        Vector::store(out + 64, rest_bits<4>(tile, half, FirstIndices<4>{}));
      }
    }
  }

  // The numbers of row `r` for blocks [0, count).
  static void put_scales(const uint8_t* row, int r, int64_t count, uint8_t* out) {
    constexpr int kNumber = 2 * kPanelRows;
    for (int64_t b = 0; b < count; ++b) {
      uint8_t* at = out + panel_codes_at(kTraits, b) - panel_scale_bytes(kTraits);
      uint8_t* header = out + panel_group_at(kTraits, b);
      const uint8_t* group = row + b / 8 * F::kBytes;
      if constexpr (kTraits.factors == PanelFactors::of_block) {
        memcpy(header + 2 * r, group, 2);
        memcpy(header + kNumber + 2 * r, group + 2, 2);
        at[r] = static_cast<uint8_t>(k_scales(group + 4) >> (8 * (b % 8)));
        at[kPanelRows + r] = static_cast<uint8_t>(k_mins(group + 4) >> (8 * (b % 8)));
      } else if constexpr (kTraits.factors == PanelFactors::of_halves) {
        memcpy(header + 2 * r, group + 208, 2);
        at[r] = group[192 + 2 * (b % 8)];
        at[kPanelRows + r] = group[192 + 2 * (b % 8) + 1];
      } else {
        const uint8_t* block = row + b * F::kBlockBytes;
        memcpy(at + 2 * r, block, 2);
        if constexpr (kTraits.has_min) memcpy(at + kNumber + 2 * r, block + 2, 2);
      }
    }
  }

  static void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels) {
    const int64_t blocks = args.k / kActivationBlock;
    const int64_t stride = Rows::stride(blocks);
    const int64_t bytes = panel_bytes(kTraits, blocks);
    TileBlock* tile = tiles_in(args.scratch);
    for (int64_t n = n_begin; n < n_end; n += kPanelRows) {
      const auto rows = static_cast<int>(args.n - n < kPanelRows ? args.n - n : kPanelRows);
      uint8_t* panel = panels + n / kPanelRows * bytes;
      const auto* weights = static_cast<const uint8_t*>(args.weights) + n * stride;
      for (int r = 0; r < kPanelRows; ++r) {
        put_scales(weights + (r < rows ? r : rows - 1) * stride, r, blocks, panel);
      }
      for (int64_t block = 0; block < blocks; block += kStretchBlocks) {
        const int64_t count = blocks - block < kStretchBlocks ? blocks - block : kStretchBlocks;
        Rows::unpack(args, n, rows, block, count, tile);
        for (int64_t b = 0; b < count; ++b) {
          put_codes(tile[b], panel + panel_codes_at(kTraits, block + b));
        }
      }
    }
  }
};

// ---- reading them ----

// Scales and constants of eight rows; `group` points to the header of eight blocks where there is
// one. The arithmetic is that of Format::scales. With of_halves the scale is the super-block's.
template <typename V, PanelTraits Traits>
inline void panel_scales(const uint8_t* group, const uint8_t* numbers, int half,
                         typename V::Floats& d, [[maybe_unused]] typename V::Floats& c) {
  constexpr int kNumber = 2 * kPanelRows;
  const typename V::Floats offset = V::set(panel_code_offset(Traits));
  if constexpr (Traits.factors == PanelFactors::of_block) {
    const typename V::Floats step = V::halves(group + 16 * half);
    const typename V::Floats min = V::halves(group + kNumber + 16 * half);
    uint64_t factor[2];
    memcpy(&factor[0], numbers + 8 * half, sizeof factor[0]);
    memcpy(&factor[1], numbers + kPanelRows + 8 * half, sizeof factor[1]);
    d = V::mul(step, V::from_bytes(factor[0]));
    c = V::sub(V::mul(offset, d), V::mul(min, V::from_bytes(factor[1])));
  } else if constexpr (Traits.factors == PanelFactors::of_halves) {
    d = V::halves(group + 16 * half);
  } else {
    d = V::halves(numbers + 16 * half);
    if constexpr (Traits.has_min) {
      c = V::fma(offset, d, V::halves(numbers + kNumber + 16 * half));
    }
  }
}

// Codes 4 J .. 4 J + 3 of eight rows, types of less than 8 bits. V has at least `load`, `bit_and`,
// `bit_or`, `shift` and `fill`, of 32 bytes or of 64 (both halves).
template <typename V, PanelTraits Traits, int J>
inline auto panel_quad(const uint8_t* codes, int half) {
  const auto both = V::load(codes + 64 * (J % 4) + 32 * half);
  const auto low = V::bit_and(V::template shift<J / 4 * 4>(both), V::fill(15));
  if constexpr (Traits.code_bits == 5) {
    const auto rest = V::load(codes + 256 + 32 * half);
    return V::bit_or(low, V::bit_and(V::template shift<J - 4>(rest), V::fill(16)));
  } else if constexpr (Traits.code_bits == 6) {
    const auto rest = V::load(codes + 256 + 64 * (J / 4) + 32 * half);
    return V::bit_or(low, V::bit_and(V::template shift<J % 4 * 2 - 4>(rest), V::fill(48)));
  } else {
    return low;
  }
}

// Tiles from panels.
template <typename Kernel, PanelTraits Panel>
struct PanelTiles {
  using V = typename Kernel::V;
  static constexpr bool kPlanes = Panel.code_bits == 8 && !Kernel::kWideCodes;
  static constexpr TileTraits kTraits = {panel_sub(Panel), Panel.has_min, kPlanes};
  static constexpr bool kSigned = Panel.code_bits == 8 && Kernel::kSignedCodes;
  static constexpr int kOffset = kSigned ? 0 : panel_code_offset(Panel);
  static constexpr int kCodeBits = Panel.code_bits;
  static constexpr int kRows = kPlanes ? 8 : kPanelRows;

  template <int... J>
  static void unpack_quads(const uint8_t* codes, TileBlock* tile, Indices<J...>) {
    for (int half = 0; half < 2; ++half) {
      (V::store(tile->codes[J] + 32 * half, panel_quad<V, Panel, J>(codes, half)), ...);
    }
  }

  static void unpack_codes(const uint8_t* codes, int half, TileBlock* tile) {
    if constexpr (kPlanes) {
      const typename V::Bytes mask = V::fill(15);
      for (int j = 0; j < 8; ++j) {
        const typename V::Bytes both = V::load(codes + 64 * j + 32 * half);
        V::store(tile->codes[j], V::bit_and(both, mask));
        V::store(tile->codes[j] + 32, V::bit_and(V::template shift<4>(both), mask));
      }
    } else if constexpr (kSigned) {
      for (int i = 0; i < 16; ++i) {
        V::store(tile->codes[0] + 32 * i, V::bit_xor(V::load(codes + 32 * i), V::fill(-128)));
      }
    } else if constexpr (Panel.code_bits == 8) {
      memcpy(tile->codes, codes, sizeof tile->codes);
    } else {
      unpack_quads(codes, tile, FirstIndices<8>{});
    }
  }

  // Factors of the halves, as Unpacker::put_scales leaves them.
  static void unpack_factors(const uint8_t* numbers, TileBlock* tile) {
    for (int part = 0; part < 2; ++part) {
      for (int r = 0; r < kPanelRows; ++r) {
        const auto factor = static_cast<int8_t>(numbers[kPanelRows * part + r]);
        tile->factor[part][r][0] = tile->factor[part][r][1] = factor;
      }
    }
    if constexpr (!Kernel::kWideCodes) return;
    for (int r = 0; r < kPanelRows; ++r) {
      const float d = tile->d[0][r];
      for (int part = 0; part < 2; ++part) {
        tile->d[part][r] = d * static_cast<float>(tile->factor[part][r][0]);
      }
    }
  }

  static void unpack(const MatmulArgs& args, int64_t row, int /*rows*/, int64_t block,
                     int64_t count, TileBlock* tile) {
    const uint8_t* panel =
        args.panels + row / kPanelRows * panel_bytes(Panel, args.k / kActivationBlock);
    const auto first = static_cast<int>(row % kPanelRows / 8);
    for (int64_t b = 0; b < count; ++b, ++tile) {
      const uint8_t* group = panel + panel_group_at(Panel, block + b);
      const uint8_t* codes = panel + panel_codes_at(Panel, block + b);
      const uint8_t* numbers = codes - panel_scale_bytes(Panel);
      for (int half = 0; half < kRows / 8; ++half) {
        typename V::Floats d;
        typename V::Floats c = V::zero();
        panel_scales<V, Panel>(group, numbers, first + half, d, c);
        V::store_floats(tile->d[0] + 8 * half, d);
        if constexpr (Panel.has_min) V::store_floats(tile->c[0] + 8 * half, c);
        if constexpr (Panel.factors == PanelFactors::of_halves) {
          V::store_floats(tile->d[1] + 8 * half, d);
        }
      }
      if constexpr (Panel.factors == PanelFactors::of_halves) unpack_factors(numbers, tile);
      unpack_codes(codes, first, tile);
    }
  }
};

// Some activation rows times one panel over one stretch, or one row times several.
struct PanelArgs {
  const uint8_t* panel;  // the first; the others behind it
  int64_t bytes;         // of a panel
  int panels;
  int64_t ahead;        // bytes that each is asked for in advance
  const uint8_t* next;  // what is read after them
  int64_t blocks;
  const QuantisedRows* x;
  int64_t m;            // first activation row
  int64_t first_block;  // of the stretch
  float* out;           // [m, n] of the first panel's first row
  int64_t out_stride;
  int64_t rows;    // of the panels to store
  int accumulate;  // 1: add to out, 0: overwrite
};

// One block of a panel, `index` blocks after the stretch's first.
struct PanelBlock {
  const uint8_t* group;  // the header of its eight, where there is one
  const uint8_t* codes;
  int64_t index;
};

// Calls add(block, p) for all blocks of the stretch, of each panel p in turn; C is the
// number of activation rows.
template <PanelTraits Traits, int C, typename Add>
inline __attribute__((always_inline)) void for_panel_blocks(const PanelArgs& args, const Add& add) {
  const int panels = panels_at_most(C) == 1 ? 1 : args.panels;
  for (int64_t index = 0; index < args.blocks; ++index) {
    const int64_t block = args.first_block + index;
    const uint8_t* group = args.panel + panel_group_at(Traits, block);
    const int64_t codes_at = panel_codes_at(Traits, block);
    const uint8_t* codes = args.panel + codes_at;
    // What follows a panel's end is not the one behind it, which is being read, but the next group.
    const int64_t ahead = codes_at + args.ahead;
    const uint8_t* next =
        ahead < args.bytes ? args.panel + ahead : args.next + (ahead - args.bytes);
    for (int p = 0; p < panels; ++p) {
      for (int line = 0; line < panel_block_bytes(Traits); line += 64)
        __builtin_prefetch(next + line);
      add(PanelBlock{group, codes, index}, p);
      group += args.bytes;
      codes += args.bytes;
      next += args.bytes;
    }
  }
}

template <typename Kernel, PanelTraits Traits>
void panel_few(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  const int64_t blocks = args.k / kActivationBlock;
  const int64_t stretch = stretch_blocks(blocks);
  const int64_t bytes = panel_bytes(Traits, blocks);
  const PanelReading& reading = args.reading;
  const int64_t step = kPanelRows * (bytes < reading.aside_from ? 1 : panels_at_most(args.m));
  for (int64_t n = n_begin; n < n_end; n += step) {
    const int64_t rows = n_end - n < step ? n_end - n : step;
    const auto panels = static_cast<int>((rows + kPanelRows - 1) / kPanelRows);
    const int64_t next = n + step < n_end || args.next_row < 0 ? n + step : args.next_row;
    for (int64_t block = 0; block < blocks; block += stretch) {
      PanelArgs panel = {args.panels + n / kPanelRows * bytes,
                         bytes,
                         panels,
                         panels == 1 ? reading.ahead : reading.ahead_aside,
                         args.panels + next / kPanelRows * bytes,
                         blocks - block < stretch ? blocks - block : stretch,
                         &args.xq,
                         0,
                         block,
                         args.out + n,
                         args.out_stride,
                         rows,
                         block == 0 ? 0 : 1};
      constexpr int kColumns = Kernel::kPanelColumns;
      for (; panel.m + kColumns <= args.m; panel.m += kColumns) {
        Kernel::template run_panels<Traits, kColumns>(panel);
      }
      Kernel::template run_panels_rest<Traits>(panel, static_cast<int>(args.m - panel.m));
    }
  }
}

}  // namespace
}  // namespace optima::kernels
