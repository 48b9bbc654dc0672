// Scatters rows of keys and values into their pages, one value at a time: K transposed inside the
// page, V as it comes; q8_0 block by block.
#include <math.h>

#include "kernels/half.h"
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {
namespace {

constexpr float kHalfMax = 65504.0f;
constexpr float kBf16Max = 0x1.fep127f;
constexpr uint16_t kHalfNan = 0x7e00;

// NaN stays NaN; everything beyond the largest finite f16 becomes that value.
float saturate(float value) {
  if (value > kHalfMax) return kHalfMax;
  return value < -kHalfMax ? -kHalfMax : value;
}

void put(float value, float* element) {
  *element = value;
}
void put(float value, Bf16* element) {
  element->bits = float_to_bf16(value > kBf16Max    ? kBf16Max
                                : value < -kBf16Max ? -kBf16Max
                                                    : value);
}
void put(float value, uint16_t* element) {
  *element = float_to_half(saturate(value));
}

template <typename Element>
void store_heads(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    const int64_t position = args.first_position + token;
    unsigned char* page = args.pages[position / kPageTokens];
    const int64_t t = position % kPageTokens;
    for (int64_t head = head_begin; head < head_end; ++head) {
      const int64_t offset = args.slot_offset + head * args.slot_stride;
      Element* k = reinterpret_cast<Element*>(page + offset);
      Element* v = k + kPageTokens * args.head_dim;
      const float* k_in = args.k + token * args.k_stride + head * args.head_dim;
      const float* v_in = args.v + token * args.v_stride + head * args.head_dim;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        put(k_in[d], k + d * kPageTokens + t);
        put(v_in[d], v + t * args.head_dim + d);
      }
    }
  }
}

// One row of K or V: byte d goes to codes[d * stride], the scale of block b to scales[b *
// scale_stride].
struct CodedRow {
  int8_t* codes;
  int64_t stride;
  uint16_t* scales;
  int64_t scale_stride;
};

void encode_block(const float* values, int64_t count, const CodedRow& to) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = fabsf(saturate(values[i]));
    if (magnitude > largest || isnan(magnitude)) largest = magnitude;
  }
  const uint16_t scale = isnan(largest) ? kHalfNan : float_to_half(largest / 127.0f);
  const float inverse = scale == 0 ? 0.0f : 1.0f / half_to_float(scale);
  *to.scales = scale;
  for (int64_t i = 0; i < count; ++i) {
    float code = saturate(values[i]) * inverse;
    if (isnan(largest)) code = 0;
    if (code > 127) code = 127;
    if (code < -127) code = -127;
    to.codes[i * to.stride] = static_cast<int8_t>(rintf(code));
  }
}

void encode_row(const float* values, int64_t head_dim, CodedRow to) {
  for (int64_t d = 0; d < head_dim; d += kKvBlockDims) {
    const int64_t left = head_dim - d;
    encode_block(values + d, left < kKvBlockDims ? left : kKvBlockDims, to);
    to.codes += kKvBlockDims * to.stride;
    to.scales += to.scale_stride;
  }
}

void encode_heads(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  const int64_t codes = kPageTokens * args.head_dim;
  const int64_t blocks = kv_blocks(args.head_dim);
  for (int64_t token = 0; token < args.tokens; ++token) {
    const int64_t position = args.first_position + token;
    const int64_t t = position % kPageTokens;
    for (int64_t head = head_begin; head < head_end; ++head) {
      unsigned char* slot =
          args.pages[position / kPageTokens] + args.slot_offset + head * args.slot_stride;
      auto* k = reinterpret_cast<int8_t*>(slot);
      auto* v = reinterpret_cast<int8_t*>(slot + kv_half_bytes(KvType::q8_0, args.head_dim));
      auto* k_scales = reinterpret_cast<uint16_t*>(k + codes);
      auto* v_scales = reinterpret_cast<uint16_t*>(v + codes);
      encode_row(args.k + token * args.k_stride + head * args.head_dim, args.head_dim,
                 {k + t, kPageTokens, k_scales + t, kPageTokens});
      encode_row(args.v + token * args.v_stride + head * args.head_dim, args.head_dim,
                 {v + t * args.head_dim, 1, v_scales + t * blocks, 1});
    }
  }
}

}  // namespace

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  switch (args.kv_type) {
    case KvType::f32:
      return store_heads<float>(args, head_begin, head_end);
    case KvType::f16:
      return store_heads<uint16_t>(args, head_begin, head_end);
    case KvType::bf16:
      return store_heads<Bf16>(args, head_begin, head_end);
    case KvType::q8_0:
      return encode_heads(args, head_begin, head_end);
  }
}

const KvStoreFn kKvStoreReference = kv_store_ref;

}  // namespace optima::kernels
