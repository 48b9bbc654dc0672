// Attention of one new token per sequence over paged KV on a GPU, split over the context
// ("flash decoding": Dao et al. 2023; merging by log-sum-exp as in arXiv:2205.14135).
//
// A block takes one split of one sequence's tokens, one kv head, and up to kHeads of the query
// heads that read it, so that K and V are read once for all of them. In a block, groups of kLanes
// lanes each take one token at a time: a lane has eight dimensions of it (kChunks times eight of
// large heads), the group adds up the products by shuffles, and goes on to V with the weight in its
// registers. Each group has a running maximum, sum and weighed values of its own; nobody meets
// before the end of the split. Then groups, warps and, in a kernel of its own, splits are merged.
//
// Exponentials are to the base 2: scores are multiplied by log2(e).
#pragma once

#include "kernels/attention/gpu_pages.cuh"
#include "kernels/cuda/ce.h"

namespace optima::kernels::cuda {

template <typename T>
struct DecodeArgs {
  const T* q;  // [sequences, heads, head_dim], row stride q_stride values
  int64_t q_stride;
  T* out;  // [sequences, heads, head_dim], row stride out_stride values
  int64_t out_stride;
  KvSlots slots;
  const int32_t* pages;  // [sequences, pages_stride]: page p has the tokens [16 p, 16 p + 16)
  int64_t pages_stride;
  // [sequences]: tokens that are stored, the query's own among them, at position length - 1. 0 = no
  // sequence (a row that fills up a batch): its output is zero.
  const int32_t* lengths;
  int sequences;
  int heads;      // a multiple of slots.kv_heads
  int window;     // a query sees its last `window` tokens; 0 = all. Pages before are not read
  float scale;    // applied to q k
  float softcap;  // score = softcap * tanh(score / softcap); 0 = none
  // [heads], null = none: a score per query head that takes its share and has no value.
  const float* sinks;
  int splits;
  // [sequences, heads, splits, head_dim + 2]: weighed values, maximum, sum. Null with one split.
  float* partial;
};

inline constexpr int kDecodeThreads = 128;
inline constexpr int kDecodeWarps = kDecodeThreads / ce::kWarp;
inline constexpr float kLog2E = 1.44269504088896f;
// The maximum of nothing: below any score that weighs, and finite, so that differences of two of
// them are no NaN.
inline constexpr float kNothing = -1e30f;

struct TokenRange {
  int begin;
  int end;
};

// Tokens of a split: whole pages, as even as they go.
CE_DEVICE TokenRange tokens_of_split(int length, int window, int split, int splits) {
  const int first = window > 0 && length > window ? length - window : 0;
  const int64_t first_page = first / kGpuPageTokens;
  const int64_t pages = (length + kGpuPageTokens - 1) / kGpuPageTokens - first_page;
  const int begin = static_cast<int>(first_page + pages * split / splits) * kGpuPageTokens;
  const int end = static_cast<int>(first_page + pages * (split + 1) / splits) * kGpuPageTokens;
  return {begin > first ? begin : first, end < length ? end : length};
}

// One head's softmax so far over the tokens that somebody has seen: kDims of the weighed values.
template <int kDims>
struct Softmax {
  float max = kNothing;
  float sum = 0;
  float values[kDims] = {};
};

// Brings a softmax to a new maximum; returns the factor.
template <int kDims>
CE_DEVICE float raise(Softmax<kDims>& softmax, float max) {
  const float factor = exp2f(softmax.max - max);
  softmax.max = max;
  softmax.sum *= factor;
  CE_UNROLL
  for (int i = 0; i < kDims; ++i) softmax.values[i] *= factor;
  return factor;
}

CE_DEVICE float larger(float a, float b) {
  return a > b ? a : b;
}

// Adds what the lane `bits` away has seen.
template <int kDims>
CE_DEVICE void merge_lanes(Softmax<kDims>& softmax, int bits) {
  const float other_max = ce::shfl_xor(ce::kFullMask, softmax.max, bits);
  const float max = larger(softmax.max, other_max);
  raise(softmax, max);
  // The other lane has done the same: both are at one maximum now.
  softmax.sum += ce::shfl_xor(ce::kFullMask, softmax.sum, bits);
  CE_UNROLL
  for (int i = 0; i < kDims; ++i) {
    softmax.values[i] += ce::shfl_xor(ce::kFullMask, softmax.values[i], bits);
  }
}

// What a block works on.
struct DecodeItem {
  int sequence;
  int kv_head;
  int first_head;  // of the query heads
  int heads;
  int split;
};
template <int kHeads, typename T>
CE_DEVICE DecodeItem decode_item(const DecodeArgs<T>& args) {
  const int group = args.heads / args.slots.kv_heads;
  const int tiles = (group + kHeads - 1) / kHeads;
  const int kv_head = ce::block_y() / tiles;
  const int in_group = ce::block_y() % tiles * kHeads;
  const int left = group - in_group;
  return {ce::block_z(), kv_head, kv_head * group + in_group, left < kHeads ? left : kHeads,
          ce::block_x()};
}

// A lane's part of a block's work: kHeads softmaxes over kChunks pieces of eight dimensions.
template <KvType kType, int kLanes, int kChunks, int kHeads>
struct DecodeLane {
  static constexpr int kDims = kChunks * kKvStep;
  static constexpr int kGroupLanes = kLanes;
  float q[kHeads][kDims];
  Softmax<kDims> softmax[kHeads];
  int dim;  // the first dimension of chunk 0; those of chunk c are c * kLanes * 8 further
  int head_dim;

  CE_DEVICE int dim_of(int chunk) const { return dim + chunk * kLanes * kKvStep; }

  template <typename T>
  CE_DEVICE void load_queries(const DecodeArgs<T>& args, const DecodeItem& item) {
    // With a cap, log2(e) comes behind it.
    const float factor = args.softcap > 0 ? args.scale : args.scale * kLog2E;
    CE_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      const int head = item.first_head + (h < item.heads ? h : 0);
      const T* row = args.q + item.sequence * args.q_stride + static_cast<int64_t>(head) * head_dim;
      CE_UNROLL
      for (int i = 0; i < kDims; ++i) {
        const int at = dim_of(i / kKvStep) + i % kKvStep;
        q[h][i] = at < head_dim ? ce::to_float(row[at]) * factor : 0.0f;
      }
    }
  }

  CE_DEVICE void load_token(const KvHalf<kType>& half, int token, float (&to)[kDims]) const {
    CE_UNROLL
    for (int c = 0; c < kChunks; ++c) {
      KvValues eight = {};
      if (dim_of(c) < head_dim) eight = load_kv<kType>(half, token, dim_of(c));
      CE_UNROLL
      for (int i = 0; i < kKvStep; ++i) to[c * kKvStep + i] = eight.v[i];
    }
  }

  // The scores of a token: the sum over the lanes of its group, in all of them.
  CE_DEVICE void scores(const float (&key)[kDims], float softcap, float (&to)[kHeads]) const {
    CE_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      float sum = 0;
      CE_UNROLL
      for (int i = 0; i < kDims; ++i) sum += q[h][i] * key[i];
      CE_UNROLL
      for (int bits = kLanes / 2; bits > 0; bits /= 2) {
        sum += ce::shfl_xor(ce::kFullMask, sum, bits);
      }
      to[h] = softcap > 0 ? softcap * tanhf(sum / softcap) * kLog2E : sum;
    }
  }

  CE_DEVICE void add(int h, float score, const float (&value)[kDims]) {
    raise(softmax[h], larger(softmax[h].max, score));
    const float weight = exp2f(score - softmax[h].max);
    softmax[h].sum += weight;
    CE_UNROLL
    for (int i = 0; i < kDims; ++i) softmax[h].values[i] += weight * value[i];
  }
};

// All tokens of the split, a token per group of lanes and step. Every lane takes every step, as the
// lanes of a warp meet in it; a group without a token has nothing to add.
template <KvType kType, int kLanes, int kChunks, int kHeads, typename T>
CE_DEVICE void attend(DecodeLane<kType, kLanes, kChunks, kHeads>& lane, const DecodeArgs<T>& args,
                      const DecodeItem& item, const TokenRange& range) {
  constexpr int kDims = kChunks * kKvStep;
  constexpr int kGroups = kDecodeThreads / kLanes;
  constexpr int kWarpGroups = ce::kWarp / kLanes;
  const int32_t* pages = args.pages + item.sequence * args.pages_stride;
  for (int at = range.begin + ce::warp() * kWarpGroups; at < range.end; at += kGroups) {
    const int token = at + ce::lane() / kLanes;
    const bool seen = token < range.end;
    float key[kDims] = {};
    float value[kDims] = {};
    if (seen) {
      const int64_t page = pages[token / kGpuPageTokens];
      const int in_page = token % kGpuPageTokens;
      lane.load_token(kv_half<kType>(args.slots, page, item.kv_head, KvPart::key), in_page, key);
      lane.load_token(kv_half<kType>(args.slots, page, item.kv_head, KvPart::value), in_page,
                      value);
    }
    float score[kHeads];
    lane.scores(key, args.softcap, score);
    if (seen) {
      CE_UNROLL
      for (int h = 0; h < kHeads; ++h) lane.add(h, score[h], value);
    }
  }
  CE_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    CE_UNROLL
    for (int bits = kLanes; bits < ce::kWarp; bits *= 2) merge_lanes(lane.softmax[h], bits);
  }
}

// The weighed values of a head, to the output or to the split's partial.
template <typename T>
struct DecodeOut {
  const DecodeArgs<T>& args;
  int sequence;
  int head;
  int split;

  CE_DEVICE void put(int dim, float value, float max, float sum) const {
    const int head_dim = args.slots.head_dim;
    if (args.splits == 1) {
      T* out = args.out + sequence * args.out_stride + static_cast<int64_t>(head) * head_dim;
      const float all =
          sum + (args.sinks == nullptr ? 0.0f : exp2f(args.sinks[head] * kLog2E - max));
      out[dim] = ce::from_float<T>(all == 0 ? 0.0f : value / all);
      return;
    }
    const int64_t row = (static_cast<int64_t>(sequence) * args.heads + head) * args.splits + split;
    float* partial = args.partial + row * (head_dim + 2);
    partial[dim] = value;
    if (dim == 0) {
      partial[head_dim] = max;
      partial[head_dim + 1] = sum;
    }
  }
};

// What the warps of a block leave for each other of one head.
template <int kDims>
struct WarpParts {
  float values[kDecodeWarps][kDims];
  float max[kDecodeWarps];
  float sum[kDecodeWarps];
};

// The warps' softmaxes of a head become one, through shared memory. The whole block comes.
template <int kDims, typename Lane, int kOwn, typename T>
CE_DEVICE void merge_warps(WarpParts<kDims>& parts, const Lane& lane, const Softmax<kOwn>& mine,
                           const DecodeOut<T>& out) {
  ce::sync();  // the parts of the head before have been read
  if (ce::lane() < Lane::kGroupLanes) {
    CE_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      parts.values[ce::warp()][lane.dim_of(i / kKvStep) + i % kKvStep] = mine.values[i];
    }
  }
  if (ce::lane() == 0) {
    parts.max[ce::warp()] = mine.max;
    parts.sum[ce::warp()] = mine.sum;
  }
  ce::sync();
  float max = parts.max[0];
  for (int w = 1; w < kDecodeWarps; ++w) max = larger(max, parts.max[w]);
  float sum = 0;
  for (int w = 0; w < kDecodeWarps; ++w) sum += parts.sum[w] * exp2f(parts.max[w] - max);
  for (int dim = ce::thread_x(); dim < lane.head_dim; dim += kDecodeThreads) {
    float value = 0;
    for (int w = 0; w < kDecodeWarps; ++w) {
      value += parts.values[w][dim] * exp2f(parts.max[w] - max);
    }
    out.put(dim, value, max, sum);
  }
}

template <typename T, KvType kType, int kLanes, int kChunks, int kHeads>
CE_GLOBAL(kDecodeThreads)
decode_attention_kernel(DecodeArgs<T> args) {
  const DecodeItem item = decode_item<kHeads>(args);
  const TokenRange range =
      tokens_of_split(args.lengths[item.sequence], args.window, item.split, args.splits);
  DecodeLane<kType, kLanes, kChunks, kHeads> lane;
  lane.dim = ce::lane() % kLanes * kKvStep;
  lane.head_dim = args.slots.head_dim;
  lane.load_queries(args, item);
  attend(lane, args, item, range);
  CE_SHARED(parts, WarpParts<kLanes * kChunks * kKvStep>, );
  CE_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    if (h >= item.heads) continue;  // alike in the whole block
    const DecodeOut<T> out = {args, item.sequence, item.first_head + h, item.split};
    merge_warps(parts, lane, lane.softmax[h], out);
  }
}

inline constexpr int kMergeThreads = 128;

// Splits become the output; the sink enters once. A block takes a head of a sequence.
template <typename T>
CE_GLOBAL(kMergeThreads)
merge_splits_kernel(DecodeArgs<T> args) {
  const int head = ce::block_x();
  const int sequence = ce::block_y();
  const int head_dim = args.slots.head_dim;
  const int64_t row = (static_cast<int64_t>(sequence) * args.heads + head) * args.splits;
  const float* partial = args.partial + row * (head_dim + 2);
  float max = args.sinks == nullptr ? kNothing : larger(kNothing, args.sinks[head] * kLog2E);
  for (int s = 0; s < args.splits; ++s) {
    max = larger(max, partial[static_cast<int64_t>(s) * (head_dim + 2) + head_dim]);
  }
  T* out = args.out + sequence * args.out_stride + static_cast<int64_t>(head) * head_dim;
  for (int dim = ce::thread_x(); dim < head_dim; dim += kMergeThreads) {
    float value = 0;
    float sum = args.sinks == nullptr ? 0.0f : exp2f(args.sinks[head] * kLog2E - max);
    for (int s = 0; s < args.splits; ++s) {
      const float* split = partial + static_cast<int64_t>(s) * (head_dim + 2);
      const float factor = exp2f(split[head_dim] - max);
      value += split[dim] * factor;
      sum += split[head_dim + 1] * factor;
    }
    out[dim] = ce::from_float<T>(sum == 0 ? 0.0f : value / sum);
  }
}

template <typename T, KvType kType, int kLanes, int kChunks, int kHeads>
ce::Status launch_decode(const DecodeArgs<T>& args, ce::Stream stream) {
  const int group = args.heads / args.slots.kv_heads;
  const int tiles = (group + kHeads - 1) / kHeads;
  const ce::Dim grid = {args.splits, args.slots.kv_heads * tiles, args.sequences};
  return ce::launch(decode_attention_kernel<T, kType, kLanes, kChunks, kHeads>,
                    {"decode_attention", grid, kDecodeThreads, 0, stream}, args);
}

// Query heads that share K and V are taken together as far as the registers go.
template <typename T, KvType kType, int kLanes, int kChunks>
ce::Status decode_heads(const DecodeArgs<T>& args, ce::Stream stream) {
  const int group = args.heads / args.slots.kv_heads;
  if (group == 1) return launch_decode<T, kType, kLanes, kChunks, 1>(args, stream);
  if (group <= 4 || kChunks > 1) {
    return launch_decode<T, kType, kLanes, kChunks, 4>(args, stream);
  }
  return launch_decode < T, kType, kLanes, kChunks, kChunks == 1 ? 8 : 4 > (args, stream);
}

template <typename T, KvType kType>
ce::Status decode_dims(const DecodeArgs<T>& args, ce::Stream stream) {
  const int head_dim = args.slots.head_dim;
  if (head_dim % kKvStep != 0) return ce::refused("decode_attention: head size not 8 n");
  if (head_dim <= 64) return decode_heads<T, kType, 8, 1>(args, stream);
  if (head_dim <= 128) return decode_heads<T, kType, 16, 1>(args, stream);
  if (head_dim <= 256) return decode_heads<T, kType, 32, 1>(args, stream);
  if (head_dim <= 512) return decode_heads<T, kType, 32, 2>(args, stream);
  return ce::refused("decode_attention: head size above 512");
}

template <typename T>
ce::Status decode_attention(const DecodeArgs<T>& args, KvType type, ce::Stream stream) {
  if (args.sequences == 0) return {};
  ce::Status status = ce::refused("decode_attention: KV in f32 is for the CPU");
  if (type == KvType::f16) status = decode_dims<T, KvType::f16>(args, stream);
  if (type == KvType::bf16) status = decode_dims<T, KvType::bf16>(args, stream);
  if (type == KvType::q8_0) status = decode_dims<T, KvType::q8_0>(args, stream);
  if (!status.ok() || args.splits == 1) return status;
  const ce::Dim grid = {args.heads, args.sequences};
  return ce::launch(merge_splits_kernel<T>, {"merge_splits", grid, kMergeThreads, 0, stream}, args);
}

}  // namespace optima::kernels::cuda
