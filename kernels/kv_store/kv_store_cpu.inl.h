// The KV store over the words of kernels/vec/f32_*.h of eight lanes. V rows are converted eight
// values at a time. K goes in by 8 x 8 blocks, transposed in registers, wherever eight tokens fill
// half a page; single tokens (decoding) and ragged ends are converted by vectors and scattered. An
// Element is what f16 (uint16_t) or bf16 pages are made of; fp32 pages, the reference path's, take
// the reference.
#pragma once

#include "kernels/kv_store/kv_store_q8.inl.h"

namespace optima::kernels {

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);

namespace {

constexpr int64_t kLanes = 8;

template <typename Element>
constexpr float kLargest = kLargestHalf;
template <>
constexpr float kLargest<Bf16> = 0x1.fep127f;

// One kv head of the run: where token 0 lies, and how its pages are found.
struct Head {
  const KvStoreArgs& args;
  int64_t head;

  const float* k(int64_t token) const {
    return args.k + token * args.k_stride + head * args.head_dim;
  }
  const float* v(int64_t token) const {
    return args.v + token * args.v_stride + head * args.head_dim;
  }
  template <typename Element>
  Element* slot(int64_t position) const {
    return reinterpret_cast<Element*>(args.pages[position / kPageTokens] + args.slot_offset +
                                      head * args.slot_stride);
  }
};

template <typename V, typename Element>
void store_values(const Head& head, int64_t token) {
  const int64_t position = head.args.first_position + token;
  const int64_t head_dim = head.args.head_dim;
  Element* v = head.slot<Element>(position) + (kPageTokens + position % kPageTokens) * head_dim;
  const float* from = head.v(token);
  for (int64_t d = 0; d < head_dim; d += kLanes)
    V::store_half(v + d, within<V>(kLargest<Element>, from + d));
}

template <typename V, typename Element>
void scatter_key(const Head& head, int64_t token) {
  const int64_t position = head.args.first_position + token;
  Element* k = head.slot<Element>(position) + position % kPageTokens;
  const float* from = head.k(token);
  for (int64_t d = 0; d < head.args.head_dim; d += kLanes) {
    Element halves[kLanes];
    V::store_half(halves, within<V>(kLargest<Element>, from + d));
    for (int64_t i = 0; i < kLanes; ++i) k[(d + i) * kPageTokens] = halves[i];
  }
}

// Eight tokens that start at a multiple of eight.
template <typename V, typename Element>
void store_eight_keys(const Head& head, int64_t token) {
  const int64_t position = head.args.first_position + token;
  Element* k = head.slot<Element>(position) + position % kPageTokens;
  for (int64_t d = 0; d < head.args.head_dim; d += kLanes) {
    typename V::Reg rows[8];
    for (int64_t i = 0; i < kLanes; ++i)
      rows[i] = within<V>(kLargest<Element>, head.k(token + i) + d);
    V::transpose(rows);
    for (int64_t i = 0; i < kLanes; ++i) V::store_half(k + (d + i) * kPageTokens, rows[i]);
  }
}

template <typename V, typename Element>
void store_head(const Head& head) {
  const KvStoreArgs& args = head.args;
  for (int64_t token = 0; token < args.tokens; ++token) store_values<V, Element>(head, token);
  for (int64_t token = 0; token < args.tokens;) {
    const bool aligned = (args.first_position + token) % kLanes == 0;
    if (aligned && token + kLanes <= args.tokens) {
      store_eight_keys<V, Element>(head, token);
      token += kLanes;
    } else {
      scatter_key<V, Element>(head, token);
      ++token;
    }
  }
}

template <typename V>
void store_heads(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  static_assert(V::kWidth == kLanes);
  if (args.kv_type == KvType::f32) {
    kv_store_ref(args, head_begin, head_end);
    return;
  }
  for (int64_t head = head_begin; head < head_end; ++head) {
    if (args.kv_type == KvType::f16) store_head<V, uint16_t>({args, head});
    if (args.kv_type == KvType::bf16) store_head<V, Bf16>({args, head});
    if (args.kv_type == KvType::q8_0) encode_head<V>(args, head);
  }
}

}  // namespace
}  // namespace optima::kernels
