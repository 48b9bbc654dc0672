// Reference dequantisation: plain loops in the arithmetic order of the format's definition.

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/quant/blocks.h"
#include "kernels/quant/weight_type.h"

namespace optima::kernels {
namespace {

void dequant_f32(const void* row, float* out, int64_t values) {
  memcpy(out, row, static_cast<size_t>(values) * sizeof(float));
}

void dequant_f16(const void* row, float* out, int64_t values) {
  const auto* bytes = static_cast<const uint8_t*>(row);
  for (int64_t i = 0; i < values; ++i) out[i] = load_half(bytes + 2 * i);
}

void dequant_bf16(const void* row, float* out, int64_t values) {
  const auto* bytes = static_cast<const uint8_t*>(row);
  for (int64_t i = 0; i < values; ++i) out[i] = bf16_to_float(load_u16(bytes + 2 * i));
}

void block_q4_0(const uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int j = 0; j < 16; ++j) {
    const int q = block[2 + j];
    out[j] = d * static_cast<float>((q & 15) - kQ4Offset);
    out[j + 16] = d * static_cast<float>((q >> 4) - kQ4Offset);
  }
}

void block_q4_1(const uint8_t* block, float* out) {
  const float d = load_half(block);
  const float m = load_half(block + 2);
  for (int j = 0; j < 16; ++j) {
    const int q = block[4 + j];
    out[j] = d * static_cast<float>(q & 15) + m;
    out[j + 16] = d * static_cast<float>(q >> 4) + m;
  }
}

// The 5-bit code j of Q5_0 and Q5_1: a nibble, and bit j of a 32-bit word as its high bit.
int code5(const uint8_t* nibbles, uint32_t high, int j) {
  const int low = j < 16 ? nibbles[j] & 15 : nibbles[j - 16] >> 4;
  return low | static_cast<int>((high >> j & 1u) << 4);
}

void block_q5_0(const uint8_t* block, float* out) {
  const float d = load_half(block);
  const uint32_t high = load_u32(block + 2);
  for (int j = 0; j < 32; ++j) {
    out[j] = d * static_cast<float>(code5(block + 6, high, j) - kQ5Offset);
  }
}

void block_q5_1(const uint8_t* block, float* out) {
  const float d = load_half(block);
  const float m = load_half(block + 2);
  const uint32_t high = load_u32(block + 4);
  for (int j = 0; j < 32; ++j) {
    out[j] = d * static_cast<float>(code5(block + 8, high, j)) + m;
  }
}

void block_q8_0(const uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(static_cast<int8_t>(block[2 + j]));
}

// Weight i = 128 h + 32 s + l of Q2_K and Q3_K has its two low bits at shift 2 s of byte 32 h + l.
int code2(const uint8_t* codes, int i) {
  return codes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

void block_q2_k(const uint8_t* block, float* out) {
  const float d = load_half(block + 80);
  const float dmin = load_half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int packed = block[i / 16];
    const float scale = d * static_cast<float>(packed & 15);
    const float min = dmin * static_cast<float>(packed >> 4);
    out[i] = scale * static_cast<float>(code2(block + 16, i)) - min;
  }
}

void block_q3_k(const uint8_t* block, float* out) {
  const float d = load_half(block + 108);
  int8_t scale[16];
  unpack_scales_q3(block + 96, scale);
  for (int i = 0; i < 256; ++i) {
    const int high = block[i % 32] >> (i / 32) & 1;
    const int q = (code2(block + 32, i) | high << 2) - kQ3Offset;
    out[i] = d * static_cast<float>(scale[i / 16]) * static_cast<float>(q);
  }
}

// Weight i = 64 h + 32 s + l of Q4_K and Q5_K has its low nibble at shift 4 s of byte 32 h + l.
int code4(const uint8_t* codes, int i) {
  return codes[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

void block_q4_k(const uint8_t* block, float* out) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  uint8_t scale[8];
  uint8_t min[8];
  unpack_scales_min(block + 4, scale, min);
  for (int i = 0; i < 256; ++i) {
    const float step = d * static_cast<float>(scale[i / 32]);
    out[i] =
        step * static_cast<float>(code4(block + 16, i)) - dmin * static_cast<float>(min[i / 32]);
  }
}

void block_q5_k(const uint8_t* block, float* out) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  uint8_t scale[8];
  uint8_t min[8];
  unpack_scales_min(block + 4, scale, min);
  for (int i = 0; i < 256; ++i) {
    const int high = block[16 + i % 32] >> (i / 32) & 1;
    const int q = code4(block + 48, i) | high << 4;
    const float step = d * static_cast<float>(scale[i / 32]);
    out[i] = step * static_cast<float>(q) - dmin * static_cast<float>(min[i / 32]);
  }
}

// Weight i = 128 h + 32 s + l of Q6_K: low nibble s / 2 of byte 64 h + 32 (s % 2) + l, two high
// bits at shift 2 s of byte 32 h + l of the second array.
void block_q6_k(const uint8_t* block, float* out) {
  const float d = load_half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int slice = i % 128 / 32;
    const int low = block[64 * half + 32 * (slice % 2) + i % 32] >> (slice / 2 * 4) & 15;
    const int high = block[128 + 32 * half + i % 32] >> (2 * slice) & 3;
    const auto scale = static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
    out[i] = d * scale * static_cast<float>((low | high << 4) - kQ6Offset);
  }
}

void block_iq4_nl(const uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int j = 0; j < 16; ++j) {
    const int q = block[2 + j];
    out[j] = d * static_cast<float>(kIq4Values[q & 15]);
    out[j + 16] = d * static_cast<float>(kIq4Values[q >> 4]);
  }
}

void block_iq4_xs(const uint8_t* block, float* out) {
  const float d = load_half(block);
  for (int sub = 0; sub < 8; ++sub) {
    const float step = d * static_cast<float>(iq4_xs_scale(block, sub));
    for (int j = 0; j < 16; ++j) {
      const int q = block[8 + 16 * sub + j];
      out[32 * sub + j] = step * static_cast<float>(kIq4Values[q & 15]);
      out[32 * sub + j + 16] = step * static_cast<float>(kIq4Values[q >> 4]);
    }
  }
}

void block_mxfp4(const uint8_t* block, float* out) {
  const float d = mxfp4_scale(block[0]);
  for (int j = 0; j < 16; ++j) {
    const int q = block[1 + j];
    out[j] = d * static_cast<float>(kMxfp4Values[q & 15]);
    out[j + 16] = d * static_cast<float>(kMxfp4Values[q >> 4]);
  }
}

template <void (*Block)(const uint8_t*, float*), int Values, int Bytes>
void dequant_blocks(const void* row, float* out, int64_t values) {
  const auto* block = static_cast<const uint8_t*>(row);
  for (int64_t i = 0; i < values; i += Values, block += Bytes) Block(block, out + i);
}

}  // namespace

DequantRowFn dequant_row(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return dequant_f32;
    case WeightType::f16:
      return dequant_f16;
    case WeightType::bf16:
      return dequant_bf16;
    case WeightType::q4_0:
      return dequant_blocks<block_q4_0, 32, 18>;
    case WeightType::q4_1:
      return dequant_blocks<block_q4_1, 32, 20>;
    case WeightType::q5_0:
      return dequant_blocks<block_q5_0, 32, 22>;
    case WeightType::q5_1:
      return dequant_blocks<block_q5_1, 32, 24>;
    case WeightType::q8_0:
      return dequant_blocks<block_q8_0, 32, 34>;
    case WeightType::q2_k:
      return dequant_blocks<block_q2_k, 256, 84>;
    case WeightType::q3_k:
      return dequant_blocks<block_q3_k, 256, 110>;
    case WeightType::q4_k:
      return dequant_blocks<block_q4_k, 256, 144>;
    case WeightType::q5_k:
      return dequant_blocks<block_q5_k, 256, 176>;
    case WeightType::q6_k:
      return dequant_blocks<block_q6_k, 256, 210>;
    case WeightType::iq4_nl:
      return dequant_blocks<block_iq4_nl, 32, 18>;
    case WeightType::iq4_xs:
      return dequant_blocks<block_iq4_xs, 256, 136>;
    case WeightType::mxfp4:
      return dequant_blocks<block_mxfp4, 32, 17>;
  }
  return nullptr;
}

}  // namespace optima::kernels
