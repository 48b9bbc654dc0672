// Many activation rows times weights that are floats, as words of four bytes: a float, or a pair of
// bfloat16 (bf16.inl.h). Panels of 16 weight rows are unpacked to tiles of words that stay in the
// cache, and a register-blocked kernel sweeps them over all activation rows.
//
//   for 128 weight rows              (their tiles stay in L2)
//     for a stretch of <= 256 words  (a tile stays in L1)
//       unpack 8 panels
//       for <= 48 activation rows    (stay in L2, too)
//         copy them side by side
//         for a panel or two, for <= kFloatColumns activation rows: multiply_words
//
// The copy costs a hundredth and a part of the products. Without it the rows, a power of two apart
// in most models, share a few sets of the caches and drive each other out.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/matmul/float.inl.h"
#include "kernels/matmul/gemm.inl.h"
#include "kernels/matmul/matmul.h"

namespace optima::kernels {
namespace {

constexpr int64_t kWordBytes = 4;
constexpr int64_t kWordSteps = 256;  // words of a stretch
constexpr int64_t kWordPanels = 8;
constexpr int64_t kWordRows = 48;  // a multiple of every kFloatColumns
constexpr int64_t kWordTileBytes = kWordSteps * kPanelRows * kWordBytes;
constexpr int64_t kWordRowBytes = kWordSteps * kWordBytes;

constexpr int64_t word_scratch_bytes() {
  return kWordPanels * kWordTileBytes + kWordRows * kWordRowBytes + 64;
}

struct WordArgs {
  const uint8_t* tile;  // [panels][kWordSteps][16] words
  const uint8_t* x;     // [columns][kWordSteps] words
  int64_t steps;        // words of a row that there are
  float* out;           // [columns, n] of the tile's first row
  int64_t out_stride;
  int rows;        // weight rows to store
  int accumulate;  // 1: add to out, 0: overwrite
};

// Words that are floats.
template <typename Vector>
struct FloatArithmetic {
  using V = Vector;
  using Word = typename V::WideFloats;
  static Word load(const uint8_t* p) {
    return V::wide_load_floats(reinterpret_cast<const float*>(p));
  }
  static Word broadcast(const uint8_t* p) {
    float value;
    memcpy(&value, p, sizeof value);
    return V::wide_set(value);
  }
  static typename V::WideFloats add(const typename V::WideFloats& sum, const Word& w,
                                    const Word& a) {
    return V::wide_fma(w, a, sum);
  }
};

// The same as weights in a file (F of float.inl.h) and activations become them.
template <typename V, typename F>
struct FloatWords {
  using Vector = V;
  using Arithmetic = FloatArithmetic<V>;
  static constexpr int kValues = 1;             // weights of a word
  static constexpr int kFileBytes = F::kBytes;  // of these weights
  static typename V::Bytes eight(const uint8_t* p) { return V::float_bits(F::load(p)); }
  static uint32_t one(const uint8_t* p, int64_t /*left*/) { return float_bits(F::one(p)); }
  static void put_activations(const float* x, int64_t count, uint8_t* to) {
    memcpy(to, x, static_cast<size_t>(count) * sizeof(float));
  }
};

// P tiles times C activation rows.
template <typename Arithmetic, int P, int C>
[[gnu::noinline]] void multiply_words(const WordArgs& args) {  // shared by the types
  using V = typename Arithmetic::V;
  typename V::WideFloats sum[C][P];
#pragma GCC unroll 12
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < P; ++p) sum[c][p] = V::wide_zero();
  }
  const uint8_t* tile = args.tile;
  const uint8_t* x = args.x;
#pragma GCC unroll 2
  for (int64_t step = 0; step < args.steps; ++step) {
    typename Arithmetic::Word w[P];
    for (int p = 0; p < P; ++p) w[p] = Arithmetic::load(tile + p * kWordTileBytes);
#pragma GCC unroll 12
    for (int c = 0; c < C; ++c) {
      const auto a = Arithmetic::broadcast(x + c * kWordRowBytes);
      for (int p = 0; p < P; ++p) sum[c][p] = Arithmetic::add(sum[c][p], w[p], a);
    }
    tile += kPanelRows * kWordBytes;
    x += kWordBytes;
  }
#pragma GCC unroll 12
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < P; ++p) {
      float* out = args.out + c * args.out_stride + p * kPanelRows;
      const int rest = args.rows - p * kPanelRows;
      const int rows = rest < kPanelRows ? rest : kPanelRows;
      typename V::WideFloats value = sum[c][p];
      if (args.accumulate != 0) value = V::wide_add_first(value, out, rows);
      V::wide_store_first(out, value, rows);
    }
  }
}

template <typename Arithmetic, int P, int C>
void multiply_columns(const WordArgs& args, int64_t columns) {
  if (columns == C) return multiply_words<Arithmetic, P, C>(args);
  if constexpr (C > 1) multiply_columns<Arithmetic, P, C - 1>(args, columns);
}

// P tiles times `columns` activation rows, in pieces of about equal size.
template <typename Arithmetic, int P>
void sweep_words(WordArgs args, int64_t columns) {
  constexpr int kColumns = Arithmetic::V::kFloatColumns;
  for (int64_t pieces = (columns + kColumns - 1) / kColumns; pieces > 0; --pieces) {
    const int64_t piece = (columns + pieces - 1) / pieces;
    multiply_columns<Arithmetic, P, kColumns>(args, piece);
    args.x += piece * kWordRowBytes;
    args.out += piece * args.out_stride;
    columns -= piece;
  }
}

// A tile of `count` weights of up to 16 rows. Rows that do not exist repeat the last one: their
// results are never stored.
template <typename Words>
void unpack_words(const uint8_t* weights, int64_t stride, int rows, int64_t count, uint8_t* tile) {
  using V = typename Words::Vector;
  for (int half = 0; half < 2; ++half) {
    const uint8_t* row[8];
    for (int r = 0; r < 8; ++r) {
      const int index = 8 * half + r < rows ? 8 * half + r : rows - 1;
      row[r] = weights + index * stride;
    }
    uint8_t* to = tile + 8 * half * kWordBytes;
    int64_t i = 0;
    for (; (i + 8) * Words::kValues <= count; i += 8) {
      typename V::Bytes in[8];
      typename V::Bytes out[8];
      for (int r = 0; r < 8; ++r) in[r] = Words::eight(row[r] + i * Words::kFileBytes);
      V::transpose(in, out);
      for (int j = 0; j < 8; ++j) V::store(to + (i + j) * kPanelRows * kWordBytes, out[j]);
    }
    for (; i * Words::kValues < count; ++i) {
      for (int r = 0; r < 8; ++r) {
        const uint32_t word =
            Words::one(row[r] + i * Words::kFileBytes, count - i * Words::kValues);
        memcpy(to + (i * kPanelRows + r) * kWordBytes, &word, sizeof word);
      }
    }
  }
}

template <typename Words>
class WordGemm {
 public:
  explicit WordGemm(const MatmulArgs& args)
      : args_(args),
        tiles_(reinterpret_cast<uint8_t*>(tiles_in(args.scratch))),
        x_(tiles_ + kWordPanels * kWordTileBytes) {}

  void run(int64_t n_begin, int64_t n_end) const {
    constexpr int64_t kGroupRows = kWordPanels * kPanelRows;
    const int64_t stretch = stretch_weights();
    for (int64_t n = n_begin; n < n_end; n += kGroupRows) {
      const Part group = {n, n + kGroupRows < n_end ? n + kGroupRows : n_end};
      for (int64_t k = 0; k < args_.k; k += stretch) {
        run_stretch(group, {k, k + stretch < args_.k ? k + stretch : args_.k});
      }
    }
  }

 private:
  using Arithmetic = typename Words::Arithmetic;
  using V = typename Words::Vector;
  struct Part {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  // Rows are cut into stretches of about equal length, eights of words each.
  int64_t stretch_weights() const {
    const int64_t words = (args_.k + Words::kValues - 1) / Words::kValues;
    const int64_t stretches = (words + kWordSteps - 1) / kWordSteps;
    return ((words + stretches - 1) / stretches + 7) / 8 * 8 * Words::kValues;
  }
  // And so are the activation rows.
  int64_t block_rows() const {
    constexpr int64_t kColumns = V::kFloatColumns;
    const int64_t blocks = (args_.m + kWordRows - 1) / kWordRows;
    return ((args_.m + blocks - 1) / blocks + kColumns - 1) / kColumns * kColumns;
  }

  void run_stretch(Part n, Part k) const {
    const int64_t stride = args_.k / Words::kValues * Words::kFileBytes +
                           args_.k % Words::kValues * (Words::kFileBytes / Words::kValues);
    const auto* weights =
        static_cast<const uint8_t*>(args_.weights) + k.begin / Words::kValues * Words::kFileBytes;
    for (int64_t row = n.begin; row < n.end; row += kPanelRows) {
      const auto rows = static_cast<int>(n.end - row < kPanelRows ? n.end - row : kPanelRows);
      unpack_words<Words>(weights + row * stride, stride, rows, k.size(),
                          tiles_ + (row - n.begin) / kPanelRows * kWordTileBytes);
    }
    const int64_t block = block_rows();
    for (int64_t m = 0; m < args_.m; m += block) {
      const Part rows = {m, m + block < args_.m ? m + block : args_.m};
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        Words::put_activations(args_.x + row * args_.k + k.begin, k.size(),
                               x_ + (row - m) * kWordRowBytes);
      }
      run_block(n, k, rows);
    }
  }

  // All tiles of the group times the activation rows copied.
  void run_block(Part n, Part k, Part m) const {
    constexpr int64_t kStepRows = V::kFloatPanels * kPanelRows;
    for (int64_t row = n.begin; row < n.end; row += kStepRows) {
      const int64_t rest = n.end - row;
      const WordArgs words = {tiles_ + (row - n.begin) / kPanelRows * kWordTileBytes,
                              x_,
                              (k.size() + Words::kValues - 1) / Words::kValues,
                              args_.out + m.begin * args_.out_stride + row,
                              args_.out_stride,
                              static_cast<int>(rest < kStepRows ? rest : kStepRows),
                              k.begin == 0 ? 0 : 1};
      if constexpr (V::kFloatPanels == 2) {
        if (words.rows > kPanelRows) {
          sweep_words<Arithmetic, 2>(words, m.size());
          continue;
        }
      }
      sweep_words<Arithmetic, 1>(words, m.size());
    }
  }

  const MatmulArgs& args_;
  uint8_t* tiles_;
  uint8_t* x_;
};

template <typename Words>
void word_gemm(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  WordGemm<Words>(args).run(n_begin, n_end);
}

}  // namespace
}  // namespace optima::kernels
