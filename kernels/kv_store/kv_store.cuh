// Appends keys and values of one layer to KV pages on a GPU (layout: kernels/attention/
// gpu_pages.cuh), with the roundings of kv_store.h: 16-bit types saturate to their largest finite
// value; q8_0 takes the block's largest magnitude / 127 as an f16 scale; NaN stays NaN.
#pragma once

#include "kernels/attention/gpu_pages.cuh"
#include "kernels/cuda/ce.h"

namespace optima::kernels::cuda {

template <typename T>
struct KvStoreArgs {
  const T* k;  // [tokens, kv_heads, head_dim], row stride k_stride values
  int64_t k_stride;
  const T* v;
  int64_t v_stride;
  KvSlots slots;
  // [tokens]: page * kPageTokens + the token's place in it; negative = not stored (the rows that
  // fill up a batch of a captured graph).
  const int32_t* places;
  int64_t tokens;
};

inline constexpr int kKvStoreThreads = 128;

CE_DEVICE float saturate(float value, float largest) {
  if (value > largest) return largest;
  return value < -largest ? -largest : value;
}

// What a thread stores of K or V of a token: whole blocks of q8_0, else one access.
template <KvType kType>
inline constexpr int kStoreDims = kType == KvType::q8_0 ? kGpuBlockDims : kKvStep;

template <KvType kType, typename T>
CE_DEVICE void store_rounded(const T* from, KvElementOf<kType>* to) {
  const float largest = kType == KvType::f16 ? 65504.0f : 0x1.fep127f;
  ce::Pack<KvElementOf<kType>, kKvStep> pack;
  for (int i = 0; i < kKvStep; ++i) {
    pack.v[i] = ce::from_float<KvElementOf<kType>>(saturate(ce::to_float(from[i]), largest));
  }
  ce::store(to, pack);
}

// `count` is below kGpuBlockDims in the last block of some head sizes.
template <typename T>
CE_DEVICE void store_block(const T* from, int count, int8_t* to, ce::Half* scale_to) {
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    const float magnitude = fabsf(saturate(ce::to_float(from[i]), 65504.0f));
    if (magnitude > largest || isnan(magnitude)) largest = magnitude;
  }
  const bool bad = isnan(largest);
  const ce::Half scale = ce::from_float<ce::Half>(largest / 127.0f);
  const float wide = ce::to_float(scale);
  const float inverse = wide == 0 ? 0.0f : 1.0f / wide;
  *scale_to = scale;
  for (int i = 0; i < count; i += kKvStep) {
    ce::Pack<int8_t, kKvStep> codes;
    for (int j = 0; j < kKvStep; ++j) {
      const float code =
          bad ? 0.0f : saturate(saturate(ce::to_float(from[i + j]), 65504.0f) * inverse, 127.0f);
      codes.v[j] = static_cast<int8_t>(rintf(code));
    }
    ce::store(to + i, codes);
  }
}

template <typename T, KvType kType>
CE_GLOBAL(kKvStoreThreads)
kv_store_kernel(KvStoreArgs<T> args) {
  constexpr int kDims = kStoreDims<kType>;
  const KvSlots& slots = args.slots;
  const int place = args.places[ce::block_x()];
  const int per_head = (slots.head_dim + kDims - 1) / kDims;
  const int items = 2 * slots.kv_heads * per_head;
  const int step = ce::grid_y() * kKvStoreThreads;
  int item = ce::block_y() * kKvStoreThreads + ce::thread_x();
  for (; place >= 0 && item < items; item += step) {
    const KvPart part = item < items / 2 ? KvPart::key : KvPart::value;
    const int kv_head = item % (items / 2) / per_head;
    const int dim = item % per_head * kDims;
    const int64_t token = ce::block_x();
    const T* row =
        part == KvPart::key ? args.k + token * args.k_stride : args.v + token * args.v_stride;
    const T* from = row + kv_head * slots.head_dim + dim;
    const auto half = kv_half<kType>(slots, place / kGpuPageTokens, kv_head, part);
    const int at = place % kGpuPageTokens;
    if constexpr (kType == KvType::q8_0) {
      const int left = slots.head_dim - dim;
      store_block(from, left < kDims ? left : kDims, half.row(at) + dim,
                  half.scales(at) + dim / kDims);
    } else {
      store_rounded<kType>(from, half.row(at) + dim);
    }
  }
}

template <typename T, KvType kType>
ce::Status launch_kv_store(const KvStoreArgs<T>& args, ce::Stream stream) {
  const int per_head = (args.slots.head_dim + kStoreDims<kType> - 1) / kStoreDims<kType>;
  const int items = 2 * args.slots.kv_heads * per_head;
  const ce::Dim grid = {static_cast<int>(args.tokens),
                        (items + kKvStoreThreads - 1) / kKvStoreThreads};
  return ce::launch(kv_store_kernel<T, kType>, {"kv_store", grid, kKvStoreThreads, 0, stream},
                    args);
}

// For the types that a GPU keeps KV in: f16, bf16, q8_0. f32 is refused.
template <typename T>
ce::Status kv_store(const KvStoreArgs<T>& args, KvType type, ce::Stream stream) {
  if (args.tokens == 0) return {};
  switch (type) {
    case KvType::f16:
      return launch_kv_store<T, KvType::f16>(args, stream);
    case KvType::bf16:
      return launch_kv_store<T, KvType::bf16>(args, stream);
    case KvType::q8_0:
      return launch_kv_store<T, KvType::q8_0>(args, stream);
    case KvType::f32:
      break;
  }
  return ce::refused("kv_store: KV in f32 is for the CPU");
}

}  // namespace optima::kernels::cuda
