// What the norms share: rows with an addition before, and how wide a row can be read.
#pragma once

#include "kernels/cuda/ce.h"

namespace optima::kernels::cuda {

// Rows that a norm reads: x, or the sum of the two, which then becomes the new residual.
template <typename T>
struct ResidualRows {
  const T* x;  // [rows, width], row stride x_stride values
  int64_t x_stride;
  T* residual;  // [rows, width], row stride residual_stride; gets the sum. Null = none
  int64_t residual_stride;
};

template <typename T>
struct ResidualRow {
  const T* x;
  T* residual;
  // Where the values lie after the addition.
  CE_DEVICE const T* sum() const { return residual == nullptr ? x : residual; }
};

template <typename T>
CE_DEVICE ResidualRow<T> row_of(const ResidualRows<T>& rows, int64_t row) {
  return {rows.x + row * rows.x_stride,
          rows.residual == nullptr ? nullptr : rows.residual + row * rows.residual_stride};
}

// Values [at, at + N) of a row: added, rounded to T and stored, where there is something to add.
template <typename T, int N>
CE_DEVICE ce::Pack<T, N> add_residual(const ResidualRow<T>& row, int at) {
  ce::Pack<T, N> sum = ce::load<T, N>(row.x + at);
  if (row.residual == nullptr) return sum;
  const ce::Pack<T, N> kept = ce::load<T, N>(row.residual + at);
  for (int i = 0; i < N; ++i) {
    sum.v[i] = ce::from_float<T>(ce::to_float(kept.v[i]) + ce::to_float(sum.v[i]));
  }
  ce::store(row.residual + at, sum);
  return sum;
}

// Whether rows that begin at `p` and lie `stride` values apart can be read by the widest access.
// Null is no obstacle.
template <typename T>
bool rows_are_wide(const T* p, int64_t stride) {
  return p == nullptr || (reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride % ce::kWidest<T> == 0);
}

template <typename T>
bool rows_are_wide(const ResidualRows<T>& rows) {
  return rows_are_wide(rows.x, rows.x_stride) &&
         rows_are_wide(static_cast<const T*>(rows.residual), rows.residual_stride);
}

// Up to this width a warp takes a row (heads); above, a block of 256 threads.
inline constexpr int kWarpRowMax = 512;
inline constexpr int kRowThreads = 256;

}  // namespace optima::kernels::cuda
