// The weight types of GGUF files that the kernels read, with the file's own type ids.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace optima::kernels {

enum class WeightType : int32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30,
  mxfp4 = 39,
};

struct WeightTypeInfo {
  WeightType type;
  const char* name;      // "Q4_K", as GGUF tools print it
  int32_t block_values;  // weights in a block; the length of a row is a multiple of it
  int32_t block_bytes;
};

// Null for a type id that is not in the table.
const WeightTypeInfo* find_weight_type(int32_t type_id);

// Bytes of a row of `values` weights (a multiple of block_values).
inline size_t row_bytes(const WeightTypeInfo& info, int64_t values) {
  return static_cast<size_t>(values / info.block_values) * static_cast<size_t>(info.block_bytes);
}

// Dequantises `values` weights of one row to fp32, exactly as the format defines them.
// variants: all types through one table.
using DequantRowFn = void (*)(const void* row, float* out, int64_t values);
DequantRowFn dequant_row(WeightType type);  // reference, plain loops (dequant_ref.cc)

}  // namespace optima::kernels
