// One safetensors file: an 8-byte little-endian header length, a JSON header, the data. Every
// offset and product is checked against the file's size, and ranges must not overlap.
// Format: the README of the safetensors project (huggingface/safetensors).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/quant/weight_type.h"

namespace optima::model {

enum class SafeType : uint8_t { f32, f16, bf16, f8_e4m3, i8, u8, i32, i64 };

int64_t safe_type_bytes(SafeType type);
const char* safe_type_name(SafeType type);  // as the header spells it

struct SafeTensor {
  std::string name;
  SafeType type{};
  std::vector<int64_t> shape;  // outermost first, as the header has it; empty = one value
  std::span<const std::byte> data;
  // Where decoded weights took the place of the file's: `data` holds rows of this type, not `type`.
  std::optional<kernels::WeightType> decoded = {};
};

// Tensors in the order of the header. Messages name the tensor, not the file.
Result<std::vector<SafeTensor>> parse_safetensors(std::span<const std::byte> file);

}  // namespace optima::model
