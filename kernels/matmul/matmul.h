// out[m, n] = sum_k activations[m, k] * weights[n, k]
//
// Weights lie as the file has them: row n is row_bytes long, rows back to back. Activations are
// fp32 for the reference and quantised rows (below) for the fast variants.
//
// Quantised activations of one row of k values (k padded up to a multiple of 32 with zeros):
//   q        int8 [k_padded]           x ≈ q * scale, |q| <= 127
//   scale    float [k_padded / 32]
//   sum_x    float [k_padded / 32]     Σ x of a block of 32 (unrounded, for constant terms)
//   sum_x16  float [k_padded / 16]     the same of blocks of 16
//   pairs    int16 [k_padded / 32][2]  Σ q of a block of 32 over k % 4 in {0, 1} and in {2, 3}
//   pairs16  int16 [k_padded / 16][2]  the same of blocks of 16
// Rows of each array follow each other without a gap. A weight is read as
//   w = d * (u - offset) + c,  so  Σ w x ≈ d * scale * Σ (u - offset) q + c * Σ x:
// the integer sum is exact (`pairs` gives offset * Σ q), and the constant c of types with a minimum
// meets the unrounded sum. A block with a NaN or an infinity gets scale NaN and q 0.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "kernels/quant/weight_type.h"

namespace optima::kernels {

inline constexpr int64_t kActivationBlock = 32;

struct QuantisedRows {
  int8_t* q;
  float* scale;
  float* sum_x;
  float* sum_x16;
  int16_t* pairs;
  int16_t* pairs16;
  int64_t k_padded;
};

// Bytes of the arrays for `rows` rows, and the pointers into one 64-byte aligned block.
size_t quantised_rows_bytes(int64_t rows, int64_t k);
QuantisedRows quantised_rows_at(void* block, int64_t rows, int64_t k);

// Quantises rows [row_begin, row_end) of x [rows, k] (stride k) into `out`.
using QuantiseRowsFn = void (*)(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                                const QuantisedRows& out);
Variants<QuantiseRowsFn> quantise_rows_variants();

// Whether the products of an activation row may depend, in the bits that rounding leaves, on how
// many rows there are: each number of rows has a fastest way. Those of xq with panels never do.
enum class RowSums : int32_t { fastest = 0, alike = 1 };

// Many activation rows in a form of a variant's own, k a multiple of 32: rounded to bfloat16 in
// tiles (tiles.inl.h), or quantised with some rows side by side (arranged.inl.h, coarse.inl.h). A
// block of quantised_rows_bytes() also has room for them, in place of the quantised rows: so many
// bytes for a block of 32 of a row, with up to so many rows side by side.
inline constexpr int64_t kArrangedBytesMax = 64;
inline constexpr int64_t kArrangedRowsMax = 16;
using ArrangeRowsFn = void (*)(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                               void* arranged);

// How one activation row reads panels (panel.h): what keeps a CPU's memory busiest. Results do not
// depend on it.
struct PanelReading {
  // One panel at a time, or four side by side, if each has at least so many bytes.
  int64_t aside_from;
  // How far ahead a panel is asked for: one alone, and each of four.
  int64_t ahead, ahead_aside;
};

struct MatmulArgs {
  const void* weights;    // [n, k] in `type`
  const uint8_t* panels;  // the same as MatmulKernel::pack() wrote them; null = weights are read
  WeightType type;
  int64_t n;             // output features
  int64_t k;             // input features, a multiple of the type's block
  int64_t m;             // activation rows (tokens)
  const float* x;        // [m, k] fp32: used by f32/f16/bf16 weights and by the reference; for many
                         // rows the variant of AVX-512 BF16 rounds it to bfloat16, for bf16 weights
  QuantisedRows xq;      // used by quantised weights in fast variants, unless they have:
  const void* arranged;  // as arrange_rows of the variant wrote them; null = xq is read
  float* out;            // [m, n], row stride out_stride floats
  int64_t out_stride;
  void* scratch;  // scratch_bytes of the variant, private to the calling thread
  RowSums row_sums;
  PanelReading reading;
  // Rows that the thread will probably come to after its own: their panels are asked for in time.
  // < 0: those that follow.
  int64_t next_row;
};

// One row of the variants array. `run` computes output features [n_begin, n_end), for all m rows;
// ranges of different threads do not overlap. Any range is right, but with panels n_begin is a
// multiple of the granule; multiples of `granule` are fast.
struct MatmulKernel {
  void (*run)(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
  size_t (*scratch_bytes)(int64_t m, int64_t k);  // per thread; null = none
  int64_t granule;                                // preferred multiple of n per piece of work
  // Panels (panel.h), where this variant has them for the type: their bytes for n rows of k, 0 =
  // none; and the part of them that rows [n_begin, n_end) fill, n_begin a multiple of the granule
  // and n_end too unless it is n. Both null: none for any type. With panels the products of a row
  // of xq do not depend on how many rows there are.
  size_t (*panels_bytes)(WeightType type, int64_t n, int64_t k);
  void (*pack)(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
  // From arrange_from activation rows on this variant is faster on arranged activations than on
  // quantised ones. It may round weights once more then (coarse.inl.h, tiles.inl.h); with panels
  // and RowSums::alike, AMX aside, the products are those of xq. Null: it does not read them.
  ArrangeRowsFn arrange_rows = nullptr;
  int64_t arrange_from = 0;
  PanelReading reading = {12288, 2048, 384};
};
Variants<MatmulKernel> matmul_variants();    // fast: quantised activations
extern const MatmulKernel kMatmulReference;  // fp32 activations, double accumulation

// Whether the fast variants read xq (quantised types) or x (float types) for this weight type.
bool uses_quantised_activations(WeightType type);

}  // namespace optima::kernels
