// Writes new keys and values of one layer into KV pages (layout: kernels/attention/attention.h).
#pragma once

#include "kernels/attention/attention.h"

namespace optima::kernels {

struct KvStoreArgs {
  const float* k;  // [tokens, kv_heads, head_dim], row stride k_stride floats
  int64_t k_stride;
  const float* v;  // [tokens, kv_heads, head_dim], row stride v_stride floats
  int64_t v_stride;
  unsigned char* const* pages;
  int64_t slot_offset;
  int64_t slot_stride;
  KvType kv_type;
  int64_t tokens;
  int64_t first_position;
  int64_t kv_heads;
  int64_t head_dim;
};

// Stores kv heads [head_begin, head_end) of all tokens. f16 rounds to nearest even and saturates to
// the largest finite value, so that no infinity enters the cache. q8_0 does the same first. Its
// scale is the block's largest magnitude / 127 as f16, its bytes are the values divided by that,
// nearest even: what is stored is within half a scale of the value, or, where f16 is too coarse for
// so small a scale, within 2^-18. A NaN makes NaN of its
// block.
using KvStoreFn = void (*)(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);
Variants<KvStoreFn> kv_store_variants();
extern const KvStoreFn kKvStoreReference;

}  // namespace optima::kernels
