// One weight of a row in a form of GGUF files, for kernels that read few of them (embeddings). The
// blocks are those of dequant_ref.cc, whose arithmetic this repeats value by value.
#pragma once

#include "kernels/cuda/ce.h"
#include "kernels/quant/weight_type.h"

namespace optima::kernels::cuda {

// Blocks lie at any multiple of two bytes (Q6_K and others: any byte), so bytes it is.
CE_DEVICE unsigned word16(const uint8_t* p) {
  return static_cast<unsigned>(p[0]) | static_cast<unsigned>(p[1]) << 8;
}
CE_DEVICE unsigned word32(const uint8_t* p) {
  return word16(p) | word16(p + 2) << 16;
}
CE_DEVICE float half_at(const uint8_t* p) {
  return ce::to_float(ce::Half{static_cast<uint16_t>(word16(p))});
}

// A table of sixteen signed bytes, the first in the lowest byte of `low`.
CE_DEVICE int byte_of_table(uint64_t low, uint64_t high, int index) {
  return static_cast<int8_t>((index < 8 ? low : high) >> (index % 8 * 8));
}
CE_DEVICE int iq4_value(int code) {
  // -127 -104 -83 -65 -49 -35 -22 -10, then 1 13 25 38 53 69 89 113.
  return byte_of_table(0xf6eaddcfbfad9881ull, 0x7159453526190d01ull, code);
}
CE_DEVICE int mxfp4_value(int code) {
  // 0 1 2 3 4 6 8 12, then the same negative.
  return byte_of_table(0x0c08060403020100ull, 0xf4f8fafcfdfeff00ull, code);
}

// Nibble j of 32: the low ones of sixteen bytes, then the high ones.
CE_DEVICE int nibble32(const uint8_t* codes, int j) {
  return j < 16 ? codes[j] & 15 : codes[j - 16] >> 4;
}

// The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K (kernels/quant/blocks.h).
CE_DEVICE int k_scale(const uint8_t* packed, int j) {
  return j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
}
CE_DEVICE int k_minimum(const uint8_t* packed, int j) {
  return j < 4 ? packed[j + 4] & 63 : packed[j + 4] >> 4 | packed[j] >> 6 << 4;
}

// Two low bits of weight i of Q2_K and Q3_K; four of Q4_K and Q5_K.
CE_DEVICE int code2(const uint8_t* codes, int i) {
  return codes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}
CE_DEVICE int code4(const uint8_t* codes, int i) {
  return codes[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

CE_DEVICE float q3_k_at(const uint8_t* block, int i) {
  const int j = i / 16;
  const uint8_t* packed = block + 96;
  const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
  const int scale = (low | (packed[8 + j % 4] >> (2 * (j / 4)) & 3) << 4) - 32;
  const int high = block[i % 32] >> (i / 32) & 1;
  const int code = (code2(block + 32, i) | high << 2) - 4;
  return half_at(block + 108) * static_cast<float>(scale) * static_cast<float>(code);
}

CE_DEVICE float q6_k_at(const uint8_t* block, int i) {
  const int half = i / 128;
  const int slice = i % 128 / 32;
  const int low = block[64 * half + 32 * (slice % 2) + i % 32] >> (slice / 2 * 4) & 15;
  const int high = block[128 + 32 * half + i % 32] >> (2 * slice) & 3;
  const auto scale = static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
  return half_at(block + 208) * scale * static_cast<float>((low | high << 4) - 32);
}

CE_DEVICE float iq4_xs_at(const uint8_t* block, int i) {
  const int j = i / 32;
  const int low = block[4 + j / 2] >> (4 * (j % 2)) & 15;
  const int high = static_cast<int>(word16(block + 2)) >> (2 * j) & 3;
  const float step = half_at(block) * static_cast<float>((low | high << 4) - 32);
  return step * static_cast<float>(iq4_value(nibble32(block + 8 + 16 * j, i % 32)));
}

// 2^(e - 128), of a doubled value; the two smallest are subnormal.
CE_DEVICE float mxfp4_scale(int e) {
  return e == 0 ? 0x1p-128f : e == 1 ? 0x1p-127f : ldexpf(1.0f, e - 128);
}

// Weight i of a block.
template <WeightType kType>
CE_DEVICE float block_element(const uint8_t* block, int i) {
  if constexpr (kType == WeightType::q4_0) {
    return half_at(block) * static_cast<float>(nibble32(block + 2, i) - 8);
  } else if constexpr (kType == WeightType::q4_1) {
    return half_at(block) * static_cast<float>(nibble32(block + 4, i)) + half_at(block + 2);
  } else if constexpr (kType == WeightType::q5_0) {
    const int code = nibble32(block + 6, i) | static_cast<int>(word32(block + 2) >> i & 1u) << 4;
    return half_at(block) * static_cast<float>(code - 16);
  } else if constexpr (kType == WeightType::q5_1) {
    const int code = nibble32(block + 8, i) | static_cast<int>(word32(block + 4) >> i & 1u) << 4;
    return half_at(block) * static_cast<float>(code) + half_at(block + 2);
  } else if constexpr (kType == WeightType::q8_0) {
    return half_at(block) * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  } else if constexpr (kType == WeightType::q2_k) {
    const int packed = block[i / 16];
    return half_at(block + 80) * static_cast<float>(packed & 15) *
               static_cast<float>(code2(block + 16, i)) -
           half_at(block + 82) * static_cast<float>(packed >> 4);
  } else if constexpr (kType == WeightType::q3_k) {
    return q3_k_at(block, i);
  } else if constexpr (kType == WeightType::q4_k) {
    return half_at(block) * static_cast<float>(k_scale(block + 4, i / 32)) *
               static_cast<float>(code4(block + 16, i)) -
           half_at(block + 2) * static_cast<float>(k_minimum(block + 4, i / 32));
  } else if constexpr (kType == WeightType::q5_k) {
    const int code = code4(block + 48, i) | (block[16 + i % 32] >> (i / 32) & 1) << 4;
    return half_at(block) * static_cast<float>(k_scale(block + 4, i / 32)) *
               static_cast<float>(code) -
           half_at(block + 2) * static_cast<float>(k_minimum(block + 4, i / 32));
  } else if constexpr (kType == WeightType::q6_k) {
    return q6_k_at(block, i);
  } else if constexpr (kType == WeightType::iq4_nl) {
    return half_at(block) * static_cast<float>(iq4_value(nibble32(block + 2, i)));
  } else if constexpr (kType == WeightType::iq4_xs) {
    return iq4_xs_at(block, i);
  } else if constexpr (kType == WeightType::mxfp4) {
    return mxfp4_scale(block[0]) * static_cast<float>(mxfp4_value(nibble32(block + 1, i)));
  }
}

// Values and bytes of a block, as weight_type.cc has them.
struct BlockSize {
  int values;
  int bytes;
};
constexpr BlockSize block_size(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return {1, 4};
    case WeightType::f16:
    case WeightType::bf16:
      return {1, 2};
    case WeightType::q4_0:
    case WeightType::iq4_nl:
      return {32, 18};
    case WeightType::q4_1:
      return {32, 20};
    case WeightType::q5_0:
      return {32, 22};
    case WeightType::q5_1:
      return {32, 24};
    case WeightType::q8_0:
      return {32, 34};
    case WeightType::q2_k:
      return {256, 84};
    case WeightType::q3_k:
      return {256, 110};
    case WeightType::q4_k:
      return {256, 144};
    case WeightType::q5_k:
      return {256, 176};
    case WeightType::q6_k:
      return {256, 210};
    case WeightType::iq4_xs:
      return {256, 136};
    case WeightType::mxfp4:
      return {32, 17};
  }
  return {1, 0};
}

template <WeightType kType>
inline constexpr int kBlockValues = block_size(kType).values;
template <WeightType kType>
inline constexpr int kBlockBytes = block_size(kType).bytes;

// Weight i of a row.
template <WeightType kType>
CE_DEVICE float row_element(const void* row, int i) {
  if constexpr (kType == WeightType::f32) {
    return static_cast<const float*>(row)[i];
  } else if constexpr (kType == WeightType::f16) {
    return ce::to_float(static_cast<const ce::Half*>(row)[i]);
  } else if constexpr (kType == WeightType::bf16) {
    return ce::to_float(static_cast<const ce::Bf16*>(row)[i]);
  } else {
    const int64_t block = i / kBlockValues<kType>;
    return block_element<kType>(static_cast<const uint8_t*>(row) + block * kBlockBytes<kType>,
                                i % kBlockValues<kType>);
  }
}

}  // namespace optima::kernels::cuda
