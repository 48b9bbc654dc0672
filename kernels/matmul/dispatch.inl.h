// The table of one instruction set's matrix kernels, indexed by weight type.
#pragma once

#include "kernels/matmul/float.inl.h"
#include "kernels/matmul/gemm.inl.h"
#include "kernels/matmul/gemv.inl.h"

namespace optima::kernels {
namespace {

using RangeFn = void (*)(const MatmulArgs& args, int64_t n_begin, int64_t n_end);

struct TypeKernels {
  RangeFn few;  // m <= few_rows
  RangeFn many;
  int few_rows;
};

constexpr int kTypeIdEnd = 40;

struct KernelTable {
  TypeKernels of[kTypeIdEnd];
};

template <typename Kernel, WeightType... T>
constexpr void add_quantised(KernelTable& table) {
  ((table.of[static_cast<int>(T)] = {gemv<typename Kernel::V, T>, gemm<Kernel, T>, kGemvMaxRows}),
   ...);
}

template <typename V, typename F>
constexpr TypeKernels float_kernels() {
  return {float_gemv<V, F>, float_gemm<V, F>, kFloatGemvMaxRows};
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

void run_table(const KernelTable& table, const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (n_begin >= n_end || args.m <= 0) return;
  const TypeKernels& kernels = table.of[static_cast<int>(args.type)];
  (args.m <= kernels.few_rows ? kernels.few : kernels.many)(args, n_begin, n_end);
}

size_t table_scratch_bytes(int64_t k) {
  const int64_t few = kGemvMaxRows * prepared_row_bytes(k);
  const int64_t many = gemm_scratch_bytes();
  return static_cast<size_t>(few > many ? few : many);
}

}  // namespace
}  // namespace optima::kernels
