// The table of a product of many activation rows that reads them in a form of its own, by weight
// type. Gemm has the vectors V and run<Rows>(args, n_begin, n_end); Rows makes tiles of sixteen
// weight rows and whole bytes, from the file's form or from panels.
#pragma once

#include "kernels/matmul/panel.inl.h"

namespace optima::kernels {
namespace {

struct WideKernels {
  RangeFn file;
  RangeFn panels;  // null: the type has none
};

struct WideTable {
  WideKernels of[kTypeIdEnd];
};

template <typename Gemm, WeightType T>
constexpr WideKernels wide_kernels() {
  using Shape = WideShape<typename Gemm::V>;
  WideKernels kernels = {Gemm::template run<FileRows<Shape, T>>, nullptr};
  if constexpr (constexpr PanelTraits kPanel = panel_traits(T); kPanel.code_bits != 0) {
    kernels.panels = Gemm::template run<PanelTiles<Shape, kPanel>>;
  }
  return kernels;
}

template <typename Gemm, WeightType... T>
constexpr void add_wide(WideTable& table) {
  ((table.of[static_cast<int>(T)] = wide_kernels<Gemm, T>()), ...);
}

template <typename Gemm>
constexpr WideTable make_wide_table() {
  using enum WeightType;
  WideTable table = {};
  add_wide<Gemm, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4>(
      table);
  return table;
}

void run_wide(const WideTable& table, const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (n_begin >= n_end || args.m <= 0) return;
  const WideKernels& kernels = table.of[static_cast<int>(args.type)];
  (args.panels != nullptr ? kernels.panels : kernels.file)(args, n_begin, n_end);
}

}  // namespace
}  // namespace optima::kernels
