// Names and layouts; see hf_tensors.h. Most tensors stay where they lie in the mapped file; those
// whose layout differs are copied once into the allocator's memory.
#include "model/hf/hf_tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/text.h"

namespace optima::model {
namespace {

// Buffers without weights: causal masks and precomputed frequencies.
constexpr std::array<std::string_view, 4> kPassedOver = {".rotary_emb.inv_freq", ".masked_bias",
                                                         ".attn.bias", ".attention.bias"};

// What names begin with when the model was saved with a head. One that was saved without, as many
// are that make embeddings, has none of these.
constexpr std::array<std::string_view, 4> kBasePrefixes = {"model.", "transformer.", "gpt_neox.",
                                                           "bert."};

// Takes digits off the front of `text`; empty when there are none or too many.
std::string_view take_number(std::string_view& text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits > 6) return {};
  const std::string_view number = text.substr(0, digits);
  text.remove_prefix(digits);
  return number;
}

// `name` against a pattern whose "{}" stand for numbers; the GGUF name with them filled in, empty
// when it does not match.
std::string renamed(std::string_view name, const HfTensorName& row) {
  std::array<std::string_view, 2> numbers;
  size_t count = 0;
  std::string_view pattern = row.hf;
  while (!pattern.empty()) {
    if (pattern.substr(0, 2) == "{}") {
      pattern.remove_prefix(2);
      const std::string_view number = take_number(name);
      if (number.empty() || count == numbers.size()) return {};
      numbers[count++] = number;
      continue;
    }
    if (name.empty() || name.front() != pattern.front()) return {};
    name.remove_prefix(1);
    pattern.remove_prefix(1);
  }
  if (!name.empty()) return {};
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < row.gguf.size(); ++i) {
    if (row.gguf.substr(i, 2) == "{}" && next < count) {
      out += numbers[next++];
      ++i;
    } else {
      out += row.gguf[i];
    }
  }
  return out.empty() ? "-" : out;  // a match that makes no tensor still is one
}

Status wrong_shape(const SafeTensor& tensor, std::string_view wanted) {
  std::string shape;
  for (const int64_t size : tensor.shape) shape += text(shape.empty() ? "" : ", ", size);
  return Status(Code::format, text("tensor ", in_quotes(tensor.name), " has shape [", shape,
                                   "], wanted ", wanted));
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t out = 1;
  for (const int64_t size : sizes) out *= size;
  return out;
}

// The weight type of 16- and 32-bit floats; any other dtype is an error that names the tensor.
Result<kernels::WeightType> weight_type_of(const SafeTensor& tensor) {
  if (tensor.decoded) return *tensor.decoded;
  switch (tensor.type) {
    case SafeType::f32:
      return kernels::WeightType::f32;
    case SafeType::f16:
      return kernels::WeightType::f16;
    case SafeType::bf16:
      return kernels::WeightType::bf16;
    default:
      return Status(Code::unsupported, text("tensor ", in_quotes(tensor.name), " is of dtype ",
                                            safe_type_name(tensor.type),
                                            "; weights of F32, F16 and BF16 are supported, others "
                                            "where quantization_config tells how"));
  }
}

// The same for a tensor whose values are laid out anew, so that blocks of them are of no use.
Result<kernels::WeightType> value_type_of(const SafeTensor& tensor) {
  OPTIMA_ASSIGN(const kernels::WeightType type, weight_type_of(tensor));
  const auto* info = kernels::find_weight_type(static_cast<int32_t>(type));
  if (info->block_values == 1) return type;
  return Status(Code::unsupported,
                text("tensor ", in_quotes(tensor.name), " holds blocks of ", info->name,
                     ", and weights of this architecture are laid out anew"));
}

size_t value_bytes(kernels::WeightType type) {
  return kernels::row_bytes(*kernels::find_weight_type(static_cast<int32_t>(type)), 1);
}

}  // namespace

Status HfTensors::add_all(const std::vector<SafeTensor>& tensors) {
  for (const SafeTensor& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  for (const SafeTensor& tensor : tensors) OPTIMA_TRY(add(tensor));
  return {};
}

Status HfTensors::add(const SafeTensor& tensor) {
  OPTIMA_ASSIGN(bool known, add_as(tensor, tensor.name));
  for (const std::string_view prefix : kBasePrefixes) {
    if (known) return {};
    OPTIMA_ASSIGN(known, add_as(tensor, text(prefix, tensor.name)));
  }
  if (known) return {};
  for (const std::string_view tail : kPassedOver)
    if (tensor.name.ends_with(tail)) return {};
  return Status(Code::unsupported, text("tensor ", in_quotes(tensor.name),
                                        " is not known for model_type ", form_.model_type));
}

Result<bool> HfTensors::add_as(const SafeTensor& tensor, std::string_view name) {
  bool known = false;
  for (const std::span<const HfTensorName> rows : {form_.tensors, form_.shared}) {
    if (known) break;
    for (const HfTensorName& row : rows) {
      const std::string gguf = renamed(name, row);
      if (gguf.empty()) continue;
      known = true;
      OPTIMA_TRY(add_row(tensor, row, gguf));
    }
  }
  return known;
}

Status HfTensors::add_row(const SafeTensor& tensor, const HfTensorName& row, std::string name) {
  parts_.strings.push_back(std::move(name));
  const std::string_view gguf = parts_.strings.back();
  switch (row.transform) {
    case HfTransform::none:
      return add_as_is(tensor, gguf);
    case HfTransform::add_one:
      return add_one(tensor, gguf);
    case HfTransform::transpose:
      return transpose(tensor, gguf);
    case HfTransform::heads_to_parts:
      return heads_to_parts(tensor, gguf);
    case HfTransform::gate_of_pairs:
      return halve_pairs(tensor, gguf, 0);
    case HfTransform::up_of_pairs:
      return halve_pairs(tensor, gguf, 1);
    case HfTransform::gate_of_bias_pairs:
      return halve_bias_pairs(tensor, gguf, 0);
    case HfTransform::up_of_bias_pairs:
      return halve_bias_pairs(tensor, gguf, 1);
    case HfTransform::mxfp4:
      return mxfp4(tensor, gguf, {0, 1});
    case HfTransform::mxfp4_gate_of_pairs:
      return mxfp4(tensor, gguf, {0, 2});
    case HfTransform::mxfp4_up_of_pairs:
      return mxfp4(tensor, gguf, {1, 2});
    case HfTransform::read_with_blocks:
    case HfTransform::unused:
      return {};
  }
  return Status(Code::internal, "no such transform");
}

void HfTensors::push(std::string_view name, kernels::WeightType type, std::vector<int64_t> shape,
                     const std::byte* data) {
  Tensor out;
  out.name = name;
  out.type = type;
  out.rank = std::max<int>(1, static_cast<int>(shape.size()));
  std::reverse(shape.begin(), shape.end());
  std::copy(shape.begin(), shape.end(), out.shape.begin());
  out.data = data;
  const auto* info = kernels::find_weight_type(static_cast<int32_t>(type));
  out.bytes = static_cast<int64_t>(kernels::row_bytes(*info, out.row_length())) * out.rows();
  parts_.tensors.push_back(out);
}

Result<std::byte*> HfTensors::buffer(int64_t bytes, std::string_view name) {
  OPTIMA_ASSIGN(Buffer memory, allocator_.allocate(static_cast<size_t>(bytes), name));
  parts_.buffers.push_back(std::move(memory));
  return parts_.buffers.back().data();
}

Status HfTensors::add_as_is(const SafeTensor& tensor, std::string_view name) {
  OPTIMA_ASSIGN(const kernels::WeightType type, weight_type_of(tensor));
  if (tensor.shape.size() > 4 || product(tensor.shape) == 0)
    return wrong_shape(tensor, "at most 4 dimensions, none of them 0");
  const std::byte* data = tensor.data.data();
  // Headers of any length are allowed, so that a file may put its numbers at odd addresses.
  if (!tensor.decoded &&
      reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(safe_type_bytes(tensor.type))) {
    OPTIMA_ASSIGN(std::byte * copy, buffer(static_cast<int64_t>(tensor.data.size()), name));
    std::memcpy(copy, data, tensor.data.size());
    data = copy;
  }
  push(name, type, tensor.shape, data);
  return {};
}

Status HfTensors::add_one(const SafeTensor& tensor, std::string_view name) {
  OPTIMA_ASSIGN(const kernels::WeightType type, weight_type_of(tensor));
  const int64_t count = product(tensor.shape);
  if (tensor.shape.size() != 1 || count == 0) return wrong_shape(tensor, "a vector");
  OPTIMA_ASSIGN(std::byte * memory, buffer(count * 4, name));
  auto* out = reinterpret_cast<float*>(memory);
  kernels::dequant_row(type)(tensor.data.data(), out, count);
  for (int64_t i = 0; i < count; ++i) out[i] += 1.0f;
  push(name, kernels::WeightType::f32, tensor.shape, memory);
  return {};
}

Status HfTensors::transpose(const SafeTensor& tensor, std::string_view name) {
  OPTIMA_ASSIGN(const kernels::WeightType type, value_type_of(tensor));
  const size_t rank = tensor.shape.size();
  if (rank < 2 || rank > 4 || product(tensor.shape) == 0)
    return wrong_shape(tensor, "2 to 4 dimensions, none of them 0");
  std::vector<int64_t> shape = tensor.shape;
  std::swap(shape[rank - 1], shape[rank - 2]);
  const auto rows = static_cast<size_t>(shape[rank - 2]);
  const auto columns = static_cast<size_t>(shape[rank - 1]);
  const auto bytes = value_bytes(type);
  OPTIMA_ASSIGN(std::byte * out, buffer(static_cast<int64_t>(tensor.data.size()), name));
  const size_t matrix = rows * columns * bytes;
  for (size_t begin = 0; begin < tensor.data.size(); begin += matrix)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        std::memcpy(out + begin + (r * columns + c) * bytes,
                    tensor.data.data() + begin + (c * rows + r) * bytes, bytes);
  push(name, type, std::move(shape), out);
  return {};
}

// Rows [head][part][head_dim] -> [part][head][head_dim].
Status HfTensors::heads_to_parts(const SafeTensor& tensor, std::string_view name) {
  OPTIMA_ASSIGN(const kernels::WeightType type, weight_type_of(tensor));
  constexpr int64_t kParts = 3;
  const bool shaped = tensor.shape.size() == 1 || tensor.shape.size() == 2;
  if (!shaped || heads_ < 1 || tensor.shape[0] % (kParts * heads_) != 0 ||
      product(tensor.shape) == 0)
    return wrong_shape(tensor, text("rows for ", heads_, " heads of q, k and v"));
  const int64_t head_dim = tensor.shape[0] / (kParts * heads_);
  const size_t row = tensor.data.size() / static_cast<size_t>(tensor.shape[0]);
  const size_t chunk = row * static_cast<size_t>(head_dim);
  OPTIMA_ASSIGN(std::byte * out, buffer(static_cast<int64_t>(tensor.data.size()), name));
  for (int64_t head = 0; head < heads_; ++head)
    for (int64_t part = 0; part < kParts; ++part)
      std::memcpy(out + static_cast<size_t>(part * heads_ + head) * chunk,
                  tensor.data.data() + static_cast<size_t>(head * kParts + part) * chunk, chunk);
  push(name, type, tensor.shape, out);
  return {};
}

// [experts, inputs, 2 * outputs] -> [experts, outputs, inputs] of the even or the odd outputs.
Status HfTensors::halve_pairs(const SafeTensor& tensor, std::string_view name, int64_t odd) {
  OPTIMA_ASSIGN(const kernels::WeightType type, weight_type_of(tensor));
  if (tensor.shape.size() != 3 || tensor.shape[2] % 2 != 0 || product(tensor.shape) == 0)
    return wrong_shape(tensor, "[experts, inputs, pairs of outputs]");
  const int64_t experts = tensor.shape[0], inputs = tensor.shape[1];
  const int64_t outputs = tensor.shape[2] / 2;
  const auto bytes = static_cast<size_t>(safe_type_bytes(tensor.type));
  OPTIMA_ASSIGN(std::byte * out, buffer(static_cast<int64_t>(tensor.data.size() / 2), name));
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t i = 0; i < inputs; ++i) {
        const int64_t from = (e * inputs + i) * 2 * outputs + 2 * o + odd;
        const int64_t to = (e * outputs + o) * inputs + i;
        std::memcpy(out + static_cast<size_t>(to) * bytes,
                    tensor.data.data() + static_cast<size_t>(from) * bytes, bytes);
      }
  push(name, type, {experts, outputs, inputs}, out);
  return {};
}

Status HfTensors::halve_bias_pairs(const SafeTensor& tensor, std::string_view name, int64_t odd) {
  OPTIMA_ASSIGN(const kernels::WeightType type, weight_type_of(tensor));
  if (tensor.shape.size() != 2 || tensor.shape[1] % 2 != 0 || product(tensor.shape) == 0)
    return wrong_shape(tensor, "[experts, pairs of outputs]");
  const auto bytes = static_cast<size_t>(safe_type_bytes(tensor.type));
  const int64_t count = product(tensor.shape) / 2;
  OPTIMA_ASSIGN(std::byte * out, buffer(static_cast<int64_t>(tensor.data.size() / 2), name));
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + static_cast<size_t>(i) * bytes,
                tensor.data.data() + static_cast<size_t>(2 * i + odd) * bytes, bytes);
  push(name, type, {tensor.shape[0], tensor.shape[1] / 2}, out);
  return {};
}

// A folder's block of 32 values is 16 bytes, value 2i in the low half of byte i and 2i + 1 in its
// high half, with its scale elsewhere; ggml's block is the scale and 16 bytes with value i in the
// low half of byte i and value i + 16 in its high half.
Status HfTensors::mxfp4(const SafeTensor& blocks, std::string_view name, Mxfp4Rows rows) {
  constexpr std::string_view kBlocks = "_blocks";
  const std::string scales_name =
      blocks.name.substr(0, blocks.name.size() - kBlocks.size()) + "_scales";
  const auto found = by_name_.find(scales_name);
  if (found == by_name_.end())
    return Status(Code::format, text("tensor ", in_quotes(scales_name), " is missing"));
  const SafeTensor& scales = *found->second;
  if (blocks.type != SafeType::u8 || blocks.shape.size() != 4 || blocks.shape[3] != 16 ||
      blocks.shape[1] % rows.step != 0 || product(blocks.shape) == 0)
    return wrong_shape(blocks, "[experts, outputs, blocks, 16] of U8");
  const std::vector<int64_t> wanted(blocks.shape.begin(), blocks.shape.end() - 1);
  if (scales.type != SafeType::u8 || scales.shape != wanted)
    return wrong_shape(scales, "the shape of its blocks, of U8");
  const int64_t experts = blocks.shape[0], outputs = blocks.shape[1] / rows.step;
  const int64_t per_row = blocks.shape[2];
  constexpr size_t kBlockBytes = 17;
  OPTIMA_ASSIGN(std::byte * memory,
                buffer(experts * outputs * per_row * static_cast<int64_t>(kBlockBytes), name));
  std::byte* to = memory;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t row = e * blocks.shape[1] + o * rows.step + rows.first;
      for (int64_t b = 0; b < per_row; ++b, to += kBlockBytes) {
        const auto block = static_cast<size_t>(row * per_row + b);
        const std::byte* from = blocks.data.data() + block * 16;
        to[0] = scales.data[block];
        for (size_t i = 0; i < 16; ++i) {
          const auto low = from[i / 2] >> (i % 2 * 4) & std::byte{15};
          const auto high = from[8 + i / 2] >> (i % 2 * 4) & std::byte{15};
          to[1 + i] = low | high << 4;
        }
      }
    }
  }
  push(name, kernels::WeightType::mxfp4, {experts, outputs, per_row * 32}, memory);
  return {};
}

}  // namespace optima::model
