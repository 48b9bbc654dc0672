// KV pages on a GPU.
//
// Pages, groups and slots are those of attention.h: a page holds kPageTokens tokens of one group,
// and in it each (layer, kv head) pair has a slot, K then V, of the same number of bytes; so page
// tables and the accounting of pages are the same for both kinds of device. Inside a slot K
// differs: it lies as V does, token by token, [16][head_dim]. The CPU reads sixteen tokens of one
// dimension at a time and has K transposed; a warp reads whole tokens in accesses of 16 bytes, and
// ldmatrix and the products of tensor cores take both as they lie. In q8_0 the scales of K lie
// token by token too, [16][blocks], behind its codes. A slot read from the other kind of device is
// transposed on the way.
//
// A page is an index: pool + index * page_bytes. The head size is a multiple of 8.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/cuda/ce.h"

namespace optima::kernels::cuda {

// The slots of one layer.
struct KvSlots {
  unsigned char* pool;
  int64_t page_bytes;
  int64_t slot_offset;  // bytes from the page's start to the slot of kv head 0
  int64_t slot_stride;  // bytes between the slots of neighbouring kv heads
  int kv_heads;
  int head_dim;
};

inline constexpr int kGpuPageTokens = static_cast<int>(kPageTokens);
inline constexpr int kGpuBlockDims = static_cast<int>(kKvBlockDims);

// K and V of a token are read and written eight dimensions at a time.
inline constexpr int kKvStep = 8;

template <KvType kType>
struct KvElement;
template <>
struct KvElement<KvType::f16> {
  using Type = ce::Half;
};
template <>
struct KvElement<KvType::bf16> {
  using Type = ce::Bf16;
};
template <>
struct KvElement<KvType::q8_0> {
  using Type = int8_t;
};
template <KvType kType>
using KvElementOf = typename KvElement<kType>::Type;

// K, or V, of one slot: rows of tokens, and in q8_0 the scales behind them.
template <KvType kType>
struct KvHalf {
  using Element = KvElementOf<kType>;
  Element* rows;  // [16][head_dim]
  int head_dim;
  CE_DEVICE Element* row(int token) const { return rows + token * head_dim; }
  CE_DEVICE ce::Half* scales(int token) const {
    auto* all = reinterpret_cast<ce::Half*>(rows + kGpuPageTokens * head_dim);
    return all + token * ((head_dim + kGpuBlockDims - 1) / kGpuBlockDims);
  }
};

enum class KvPart : int32_t { key = 0, value = 1 };

template <KvType kType>
CE_DEVICE KvHalf<kType> kv_half(const KvSlots& slots, int64_t page, int kv_head, KvPart part) {
  int bytes = kGpuPageTokens * slots.head_dim * static_cast<int>(sizeof(KvElementOf<kType>));
  if constexpr (kType == KvType::q8_0) {
    bytes += kGpuPageTokens * ((slots.head_dim + kGpuBlockDims - 1) / kGpuBlockDims) * 2;
  }
  unsigned char* slot =
      slots.pool + page * slots.page_bytes + slots.slot_offset + kv_head * slots.slot_stride;
  if (part == KvPart::value) slot += bytes;
  return {reinterpret_cast<KvElementOf<kType>*>(slot), slots.head_dim};
}

// Eight dimensions of a token from `dim` on, widened. One access of 16 bytes (8 in q8_0).
struct KvValues {
  float v[kKvStep];
};
template <KvType kType>
CE_DEVICE KvValues load_kv(const KvHalf<kType>& half, int token, int dim) {
  const auto codes = ce::load<KvElementOf<kType>, kKvStep>(half.row(token) + dim);
  KvValues values;
  if constexpr (kType == KvType::q8_0) {
    const float scale = ce::to_float(half.scales(token)[dim / kGpuBlockDims]);
    CE_UNROLL
    for (int i = 0; i < kKvStep; ++i) values.v[i] = static_cast<float>(codes.v[i]) * scale;
  } else {
    CE_UNROLL
    for (int i = 0; i < kKvStep; ++i) values.v[i] = ce::to_float(codes.v[i]);
  }
  return values;
}

}  // namespace optima::kernels::cuda
