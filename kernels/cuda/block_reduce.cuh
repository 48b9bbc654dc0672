// Sums over the lanes of a warp and over the threads of a block, in an order that depends on
// nothing but the number of threads.
#pragma once

#include "kernels/cuda/ce.h"

namespace optima::kernels::cuda {

// The sum over all lanes of a full warp, in all of them.
CE_DEVICE float warp_sum(float value) {
  for (int bits = ce::kWarp / 2; bits > 0; bits /= 2) {
    value += ce::shfl_xor(ce::kFullMask, value, bits);
  }
  return value;
}

// The sum over a block of kThreads, in all of its threads. Every thread of the block must come.
// Begins with a barrier, so that a block may add up several sums one after another.
template <int kThreads>
CE_DEVICE float block_sum(float value) {
  static_assert(kThreads % ce::kWarp == 0);
  constexpr int kWarps = kThreads / ce::kWarp;
  CE_SHARED(parts, float, [kWarps]);
  value = warp_sum(value);
  ce::sync();
  if (ce::lane() == 0) parts[ce::warp()] = value;
  ce::sync();
  float sum = 0;
  for (int i = 0; i < kWarps; ++i) sum += parts[i];
  return sum;
}

}  // namespace optima::kernels::cuda
