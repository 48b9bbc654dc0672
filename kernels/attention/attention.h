// Attention of one sequence over paged KV.
//
// A KV page holds kPageTokens tokens of one KV group. Inside it, each (layer, kv head) pair of the
// group has one slot: K transposed [head_dim][16], then V [16][head_dim], in `KvType`. Page p
// of the sequence holds positions [16p, 16p + 16).
//
// q8_0 keeps signed bytes and, behind those of K and behind those of V, an f16 scale for each token
// and block of 32 dimensions (the last may be shorter): of K [blocks][16], of V [16][blocks]. So
// keys are read as they are of any type, sixteen tokens at a time, and their scales lie in the same
// order; a row of values has its scales side by side. Byte times scale is exact in fp32: it does
// not matter whether a page is widened as it is read or before. K and V have the same size, and a
// slot is a multiple of 64 bytes for any even head size.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

inline constexpr int64_t kPageTokens = 16;

// The values are part of a session's snapshot.
enum class KvType : int32_t { f16 = 0, f32 = 1, bf16 = 2, q8_0 = 3 };

inline const char* kv_type_name(KvType type) {
  switch (type) {
    case KvType::f16:
      return "f16";
    case KvType::f32:
      return "f32";
    case KvType::bf16:
      return "bf16";
    case KvType::q8_0:
      return "q8_0";
  }
  return "?";
}

// Dimensions of a token that share a scale in q8_0.
inline constexpr int64_t kKvBlockDims = 32;
inline int64_t kv_blocks(int64_t head_dim) {
  return (head_dim + kKvBlockDims - 1) / kKvBlockDims;
}
inline int64_t kv_element_bytes(KvType type) {
  if (type == KvType::q8_0) return 1;
  return type == KvType::f32 ? 4 : 2;
}
// Bytes of the f16 scales of K, and of V, in one slot.
inline int64_t kv_scale_bytes(KvType type, int64_t head_dim) {
  return type == KvType::q8_0 ? kPageTokens * kv_blocks(head_dim) * 2 : 0;
}
// Bytes of K, and of V, in one slot.
inline int64_t kv_half_bytes(KvType type, int64_t head_dim) {
  return kPageTokens * head_dim * kv_element_bytes(type) + kv_scale_bytes(type, head_dim);
}
// Bytes of one (layer, kv head) slot: K then V.
inline int64_t kv_slot_bytes(KvType type, int64_t head_dim) {
  return 2 * kv_half_bytes(type, head_dim);
}

// Which positions a query at p may see.
enum class AttentionMask : int32_t {
  causal = 0,  // those <= p, within the window
  all = 1,     // all of the run's: < first_position + tokens (encoders); the window must be 0
};

// Slots that the thread will probably read after those of its item, so that they can be asked for
// in time: pages[i] + slot_offset, i < count. None by default.
struct AttentionAhead {
  unsigned char* const* pages;
  int64_t count;
  int64_t slot_offset;
};

struct AttentionArgs {
  const float* q;  // [tokens, heads, head_dim], row stride q_stride floats
  int64_t q_stride;
  float* out;  // [tokens, heads, head_dim], row stride out_stride floats
  int64_t out_stride;
  // Page p of the sequence, from page 0 on; null for pages below the window, which are not read.
  unsigned char* const* pages;
  int64_t slot_offset;  // bytes from the page's start to the slot of kv head 0 of this layer
  int64_t slot_stride;  // bytes between the slots of neighbouring kv heads
  KvType kv_type;
  int64_t tokens;  // query tokens; token i has position first_position + i
  int64_t first_position;
  int64_t heads;  // query heads; kv head of query head h is h / (heads / kv_heads)
  int64_t kv_heads;
  int64_t head_dim;
  int64_t window;  // a query at p sees positions > p - window; 0 = all positions <= p
  float scale;     // applied to q·k
  float softcap;   // logit = softcap * tanh(logit / softcap); 0 = none
  // [heads], null = none: one more logit per query head, neither scaled nor capped, that takes its
  // share of the softmax and has no value.
  const float* sinks;
  AttentionMask mask;
  AttentionAhead ahead;
};

// Computes work items [begin, end) of attention_items(args); items do not share outputs, so threads
// may take them in any order. Scratch is private to the thread.
struct AttentionKernel {
  void (*run)(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch);
  size_t (*scratch_bytes)(int64_t heads, int64_t kv_heads, int64_t head_dim);
};
// An item is one (block of query tokens, kv head): kQueryBlock tokens x all query heads of that
// kv head.
inline constexpr int64_t kQueryBlock = 16;
inline int64_t attention_items(const AttentionArgs& args) {
  return (args.tokens + kQueryBlock - 1) / kQueryBlock * args.kv_heads;
}

Variants<AttentionKernel> attention_variants();
extern const AttentionKernel kAttentionReference;  // double accumulation, plain softmax

// The sum over what a query sees is made in pieces with fixed borders, merged in order by
// log-sum-exp. So it is the same, bit for bit, whatever is computed beside the query, and however
// many threads share the pieces: 256 tokens each for the first 4,096, then 4,096 each; the last
// piece has no end.
inline constexpr int64_t kAttentionPiecesMax = 32;
inline int64_t attention_piece(int64_t page) {
  const int64_t piece = page < 256 ? page / 16 : 15 + page / 256;
  return piece < kAttentionPiecesMax ? piece : kAttentionPiecesMax - 1;
}
inline int64_t attention_piece_begin(int64_t piece) {
  return piece <= 16 ? piece * 16 : (piece - 15) * 256;
}

// Few tokens at depth: the pieces of one block, at most kQueryBlock tokens, shared by threads.
// partial: [tokens * heads][splits][head_dim + 2] floats = unnormalised sum, max, sum of
// exponentials. The sinks are no part of a partial: merge adds them once.
struct AttentionSplitKernel {
  // kv head `kv_head`, pages [page_begin, page_end), which are of one piece -> partials of split
  // `split`. Splits are the pieces in order.
  void (*run)(const AttentionArgs& args, int64_t kv_head, int64_t page_begin, int64_t page_end,
              int64_t split, int64_t splits, float* partial, void* scratch);
  // Rows [row_begin, row_end) of tokens * heads.
  void (*merge)(const AttentionArgs& args, int64_t row_begin, int64_t row_end, int64_t splits,
                const float* partial);
  size_t (*scratch_bytes)(int64_t heads, int64_t kv_heads, int64_t head_dim);
};
Variants<AttentionSplitKernel> attention_split_variants();

}  // namespace optima::kernels
