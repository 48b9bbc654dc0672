// The KV store of q8_0 over the words of kernels/vec/f32_*.h, for heads that are a multiple of the
// vector's width. The same bytes as the reference's.
//
// Everything is in an unnamed namespace, so each instruction set has its own copy.
#pragma once

#include <stdint.h>

#include "kernels/half.h"
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {
namespace {

// Where a block goes: code i to codes[i * stride].
struct CodedBlock {
  int8_t* codes;
  int64_t stride;
  uint16_t* scale;
};

constexpr float kLargestHalf = 65504.0f;
template <typename V>
typename V::Reg within(float limit, const float* p) {
  return V::max(V::set1(-limit), V::min(V::set1(limit), V::load(p)));  // NaN passes
}

// The largest magnitude, or NaN if one is: it sticks to the sum of differences, which are else 0.
template <typename V>
float largest_magnitude(const float* values, int64_t count) {
  typename V::Reg largest = V::zero();
  typename V::Reg nothing = V::zero();
  for (int64_t i = 0; i < count; i += V::kWidth) {
    const typename V::Reg value = within<V>(kLargestHalf, values + i);
    largest = V::max(V::abs(value), largest);
    nothing = V::add(nothing, V::sub(value, value));
  }
  return V::largest(largest) + V::sum(nothing);
}

template <typename V>
void encode_block(const float* values, int64_t count, const CodedBlock& to) {
  const float largest = largest_magnitude<V>(values, count);
  const bool is_nan = largest != largest;
  const uint16_t scale = is_nan ? uint16_t{0x7e00} : float_to_half(largest / 127.0f);
  const bool is_zero = is_nan || scale == 0;
  *to.scale = scale;
  const float inverse = is_zero ? 0.0f : 1.0f / half_to_float(scale);
  // Adding 1.5 * 2^23 rounds to nearest even and leaves the integer in the low bits of the sum.
  const typename V::Reg shift = V::set1(12582912.0f);
  for (int64_t i = 0; i < count; i += V::kWidth) {
    const typename V::Reg code = V::mul(within<V>(kLargestHalf, values + i), V::set1(inverse));
    float shifted[V::kWidth];
    V::store(shifted, V::add(V::max(V::min(code, V::set1(127.0f)), V::set1(-127.0f)), shift));
    for (int64_t lane = 0; lane < V::kWidth; ++lane) {
      const auto bits = static_cast<int8_t>(float_bits(shifted[lane]));
      to.codes[(i + lane) * to.stride] = is_zero ? int8_t{0} : bits;
    }
  }
}

template <typename V>
void encode_head(const KvStoreArgs& args, int64_t head) {
  const int64_t head_dim = args.head_dim;
  const int64_t blocks = kv_blocks(head_dim);
  for (int64_t token = 0; token < args.tokens; ++token) {
    const int64_t position = args.first_position + token;
    const int64_t t = position % kPageTokens;
    unsigned char* slot =
        args.pages[position / kPageTokens] + args.slot_offset + head * args.slot_stride;
    auto* k = reinterpret_cast<int8_t*>(slot);
    auto* v = reinterpret_cast<int8_t*>(slot + kv_half_bytes(KvType::q8_0, head_dim));
    auto* k_scales = reinterpret_cast<uint16_t*>(k + kPageTokens * head_dim);
    auto* v_scales = reinterpret_cast<uint16_t*>(v + kPageTokens * head_dim);
    const float* keys = args.k + token * args.k_stride + head * head_dim;
    const float* values = args.v + token * args.v_stride + head * head_dim;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t d = block * kKvBlockDims;
      const int64_t count = head_dim - d < kKvBlockDims ? head_dim - d : kKvBlockDims;
      encode_block<V>(keys + d, count,
                      {k + d * kPageTokens + t, kPageTokens, k_scales + block * kPageTokens + t});
      encode_block<V>(values + d, count, {v + t * head_dim + d, 1, v_scales + t * blocks + block});
    }
  }
}

}  // namespace
}  // namespace optima::kernels
