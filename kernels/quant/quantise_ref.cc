// Plain loops; see quantise.h. It runs once, when a model is loaded.
#include "kernels/quant/quantise.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"

namespace optima::kernels {
namespace {

constexpr int64_t kBlock = 32;

uint8_t* put_half(float value, uint8_t* out) {
  const uint16_t bits = float_to_half(value);
  memcpy(out, &bits, sizeof bits);
  return out + sizeof bits;
}

void quantise_q8_0(const float* row, void* out, int64_t values) {
  auto* to = static_cast<uint8_t*>(out);
  for (int64_t begin = 0; begin < values; begin += kBlock) {
    float largest = 0;
    for (int64_t i = 0; i < kBlock; ++i) {
      const float magnitude = fabsf(row[begin + i]);
      if (magnitude > largest) largest = magnitude;
    }
    const float scale = largest / 127.0f;
    const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
    to = put_half(scale, to);
    for (int64_t i = 0; i < kBlock; ++i) {
      const float scaled = row[begin + i] * inverse;
      // A NaN would make the conversion undefined.
      const float rounded = scaled == scaled ? roundf(scaled) : 0.0f;
      *to++ = static_cast<uint8_t>(static_cast<int8_t>(rounded));
    }
  }
}

uint8_t code_q4_0(float value, float inverse) {
  const float shifted = value * inverse + 8.5f;
  if (!(shifted > 0)) return 0;
  return shifted >= 15.0f ? 15 : static_cast<uint8_t>(shifted);
}

void quantise_q4_0(const float* row, void* out, int64_t values) {
  auto* to = static_cast<uint8_t*>(out);
  for (int64_t begin = 0; begin < values; begin += kBlock) {
    float largest = 0, signed_largest = 0;
    for (int64_t i = 0; i < kBlock; ++i) {
      const float value = row[begin + i];
      if (fabsf(value) > largest) {
        largest = fabsf(value);
        signed_largest = value;
      }
    }
    const float scale = signed_largest / -8.0f;
    const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
    to = put_half(scale, to);
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      const uint8_t low = code_q4_0(row[begin + i], inverse);
      const uint8_t high = code_q4_0(row[begin + kBlock / 2 + i], inverse);
      *to++ = static_cast<uint8_t>(low | high << 4);
    }
  }
}

void round_f16(const float* row, void* out, int64_t values) {
  auto* to = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < values; ++i) to = put_half(row[i], to);
}

void round_bf16(const float* row, void* out, int64_t values) {
  auto* to = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < values; ++i) {
    const uint16_t bits = float_to_bf16(row[i]);
    memcpy(to + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace

QuantiseRowFn quantise_row(WeightType type) {
  if (type == WeightType::q8_0) return quantise_q8_0;
  if (type == WeightType::q4_0) return quantise_q4_0;
  if (type == WeightType::f16) return round_f16;
  if (type == WeightType::bf16) return round_bf16;
  return nullptr;
}

}  // namespace optima::kernels
