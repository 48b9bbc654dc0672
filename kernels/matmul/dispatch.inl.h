// The table of one instruction set's matrix kernels, indexed by weight type.
#pragma once

#include "kernels/matmul/float.inl.h"
#include "kernels/matmul/gemm.inl.h"
#include "kernels/matmul/gemv.inl.h"
#include "kernels/matmul/panel.inl.h"
#include "kernels/matmul/words.inl.h"

namespace optima::kernels {
namespace {

using PackFn = void (*)(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);

struct TypeKernels {
  RangeFn few;  // m <= few_rows
  RangeFn many;
  int few_rows;
  PackFn pack;  // null: no panels
  RangeFn panel_few;
  RangeFn panel_many;
};

struct KernelTable {
  TypeKernels of[kTypeIdEnd];
};

template <typename Kernel, WeightType T>
constexpr TypeKernels quantised_kernels() {
  TypeKernels kernels = {gemv<typename Kernel::V, T>,
                         gemm<Kernel, FileRows<Kernel, T>>,
                         kGemvMaxRows,
                         nullptr,
                         nullptr,
                         nullptr};
  constexpr PanelTraits kPanel = panel_traits(T);
  if constexpr (kPanel.code_bits != 0) {
    kernels.pack = PanelPacker<typename Kernel::V, T>::run;
    kernels.panel_few = panel_few<Kernel, kPanel>;
    kernels.panel_many = gemm<Kernel, PanelTiles<Kernel, kPanel>>;
  }
  return kernels;
}

template <typename Kernel, WeightType... T>
constexpr void add_quantised(KernelTable& table) {
  ((table.of[static_cast<int>(T)] = quantised_kernels<Kernel, T>()), ...);
}

template <typename V, typename F>
constexpr TypeKernels float_kernels() {
  return {float_few<V, F>, word_gemm<FloatWords<V, F>>, kFloatFewRows, nullptr, nullptr, nullptr};
}

template <typename Kernel>
constexpr KernelTable make_table() {
  using V = typename Kernel::V;
  using enum WeightType;
  KernelTable table = {};
  add_quantised<Kernel, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs,
                mxfp4>(table);
  table.of[static_cast<int>(f32)] = float_kernels<V, Float32<V>>();
  table.of[static_cast<int>(f16)] = float_kernels<V, Float16<V>>();
  table.of[static_cast<int>(bf16)] = float_kernels<V, BFloat16<V>>();
  return table;
}

// Activation rows from m on.
QuantisedRows rows_from(QuantisedRows x, int64_t m) {
  const int64_t blocks = x.k_padded / kActivationBlock;
  x.q += m * x.k_padded;
  x.scale += m * blocks;
  x.sum_x += m * blocks;
  x.sum_x16 += 2 * m * blocks;
  x.pairs += 2 * m * blocks;
  x.pairs16 += 4 * m * blocks;
  return x;
}

// Row by row, however many rows there are; weight rows stay in the cache meanwhile.
void run_alike(RangeFn few, const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  constexpr int64_t kWeightRows = 64;
  constexpr int64_t kRowsAtOnce = 3;
  for (int64_t n = n_begin; n < n_end; n += kWeightRows) {
    const int64_t end = n + kWeightRows < n_end ? n + kWeightRows : n_end;
    for (int64_t m = 0; m < args.m; m += kRowsAtOnce) {
      MatmulArgs part = args;
      part.m = args.m - m < kRowsAtOnce ? args.m - m : kRowsAtOnce;
      part.x = args.x + m * args.k;
      part.xq = rows_from(args.xq, m);
      part.out = args.out + m * args.out_stride;
      few(part, n, end);
    }
  }
}

void run_table(const KernelTable& table, const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (n_begin >= n_end || args.m <= 0) return;
  const TypeKernels& kernels = table.of[static_cast<int>(args.type)];
  if (args.panels != nullptr) {
    return (args.m <= kPanelFewRows ? kernels.panel_few : kernels.panel_many)(args, n_begin, n_end);
  }
  if (args.row_sums == RowSums::alike) return run_alike(kernels.few, args, n_begin, n_end);
  (args.m <= kernels.few_rows ? kernels.few : kernels.many)(args, n_begin, n_end);
}

void pack_table(const KernelTable& table, const MatmulArgs& args, int64_t n_begin, int64_t n_end,
                uint8_t* panels) {
  table.of[static_cast<int>(args.type)].pack(args, n_begin, n_end, panels);
}

size_t table_panels_bytes(const KernelTable& table, WeightType type, int64_t n, int64_t k) {
  if (table.of[static_cast<int>(type)].pack == nullptr) return 0;
  const int64_t panels = (n + kPanelRows - 1) / kPanelRows;
  return static_cast<size_t>(panels * panel_bytes(panel_traits(type), k / kActivationBlock));
}

size_t table_scratch_bytes(int64_t k) {
  const int64_t few = kGemvMaxRows * prepared_row_bytes(k);
  const int64_t codes = gemm_scratch_bytes();
  const int64_t many = codes > word_scratch_bytes() ? codes : word_scratch_bytes();
  return static_cast<size_t>(few > many ? few : many);
}

}  // namespace
}  // namespace optima::kernels
