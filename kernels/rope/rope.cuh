// The rotation of rope.h on a GPU: in place, heads side by side, the table of cosines and sines
// made once a batch (rope_table) and read by all layers of its kind.
//
// A thread takes pairs, so that nobody else reads what it writes. One launch rotates query and key
// heads where they lie behind each other in one row.
#pragma once

#include "kernels/cuda/ce.h"
#include "kernels/rope/rope.h"

namespace optima::kernels::cuda {

template <typename T>
struct RopeArgs {
  T* x;  // [tokens, heads, head_dim], row stride x_stride values
  int64_t x_stride;
  const float* cos_sin;  // [tokens, rotary_dim]: cos of pair i at 2i, sin at 2i+1
  int64_t tokens;
  int heads;
  int head_dim;
  int rotary_dim;  // the first rotary_dim values of a head are rotated; even
};

inline constexpr int kRopeThreads = 128;

template <typename T, RopePairs kPairs>
CE_GLOBAL(kRopeThreads)
rope_kernel(RopeArgs<T> args) {
  const int64_t token = ce::block_x();
  const int half = args.rotary_dim / 2;
  const float* cos_sin = args.cos_sin + token * args.rotary_dim;
  T* row = args.x + token * args.x_stride;
  const int step = ce::grid_y() * kRopeThreads;
  for (int at = ce::block_y() * kRopeThreads + ce::thread_x(); at < args.heads * half; at += step) {
    const int i = at % half;
    T* head = row + static_cast<int64_t>(at / half) * args.head_dim;
    T* first = head + (kPairs == RopePairs::adjacent ? 2 * i : i);
    T* second = first + (kPairs == RopePairs::adjacent ? 1 : half);
    const float a = ce::to_float(*first);
    const float b = ce::to_float(*second);
    const float cosine = cos_sin[2 * i];
    const float sine = cos_sin[2 * i + 1];
    *first = ce::from_float<T>(a * cosine - b * sine);
    *second = ce::from_float<T>(a * sine + b * cosine);
  }
}

template <typename T>
ce::Status rope(const RopeArgs<T>& args, RopePairs pairs, ce::Stream stream) {
  const int work = args.heads * (args.rotary_dim / 2);
  if (args.tokens == 0 || work == 0) return {};
  // Four pairs a thread: few tokens still spread over the device.
  const int blocks = (work + 4 * kRopeThreads - 1) / (4 * kRopeThreads);
  const ce::Launch config = {
      "rope", {static_cast<int>(args.tokens), blocks}, kRopeThreads, 0, stream};
  return pairs == RopePairs::adjacent
             ? ce::launch(rope_kernel<T, RopePairs::adjacent>, config, args)
             : ce::launch(rope_kernel<T, RopePairs::halves>, config, args);
}

}  // namespace optima::kernels::cuda
