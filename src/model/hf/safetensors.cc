// Reads the header of a safetensors file; see safetensors.h.
#include "model/hf/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/json.h"
#include "base/text.h"
#include "model/model_file.h"

namespace optima::model {
namespace {

constexpr uint64_t kHeaderBytesMax = uint64_t{100} << 20;  // the format's own limit
constexpr size_t kRankMax = 8;

struct TypeRow {
  const char* name;
  SafeType type;
  int64_t bytes;
};
constexpr std::array<TypeRow, 8> kTypes = {{{"F32", SafeType::f32, 4},
                                            {"F16", SafeType::f16, 2},
                                            {"BF16", SafeType::bf16, 2},
                                            {"F8_E4M3", SafeType::f8_e4m3, 1},
                                            {"I8", SafeType::i8, 1},
                                            {"U8", SafeType::u8, 1},
                                            {"I32", SafeType::i32, 4},
                                            {"I64", SafeType::i64, 8}}};

const TypeRow& row_of(SafeType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [type](const TypeRow& row) { return row.type == type; });
}

Result<int64_t> whole(const json::Value& value, std::string_view what) {
  const int64_t* number = value.integer();
  if (number == nullptr || *number < 0)
    return Status(Code::format, text(what, " is no whole number >= 0"));
  return *number;
}

Result<SafeType> read_type(const json::Value& info) {
  const json::Value* dtype = info.find("dtype");
  const std::string* name = dtype != nullptr ? dtype->string() : nullptr;
  if (name == nullptr) return Status(Code::format, "dtype is missing");
  for (const TypeRow& row : kTypes)
    if (*name == row.name) return row.type;
  return Status(Code::unsupported, text("dtype ", in_quotes(*name), " is not supported"));
}

// Fills the shape; the result is the bytes that it takes.
Result<int64_t> read_shape(const json::Value& info, SafeTensor& tensor) {
  const json::Value* shape = info.find("shape");
  if (shape == nullptr || shape->array() == nullptr || shape->array()->size() > kRankMax)
    return Status(Code::format, text("shape is no list of at most ", kRankMax, " numbers"));
  int64_t bytes = safe_type_bytes(tensor.type);
  for (const json::Value& item : *shape->array()) {
    OPTIMA_ASSIGN(const int64_t size, whole(item, "a dimension"));
    tensor.shape.push_back(size);
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return Status(Code::format, "the product of the shape is beyond 64 bits");
  }
  return bytes;
}

Result<SafeTensor> read_tensor(const json::Member& member, std::span<const std::byte> data) {
  SafeTensor tensor;
  tensor.name = member.key;
  OPTIMA_ASSIGN(tensor.type, read_type(member.value));
  OPTIMA_ASSIGN(const int64_t bytes, read_shape(member.value, tensor));
  const json::Value* offsets = member.value.find("data_offsets");
  if (offsets == nullptr || offsets->array() == nullptr || offsets->array()->size() != 2)
    return Status(Code::format, "data_offsets is no pair");
  OPTIMA_ASSIGN(const int64_t begin, whole((*offsets->array())[0], "data_offsets[0]"));
  OPTIMA_ASSIGN(const int64_t end, whole((*offsets->array())[1], "data_offsets[1]"));
  const auto size = static_cast<int64_t>(data.size());
  if (begin > end || end > size)
    return Status(Code::format,
                  text("data_offsets [", begin, ", ", end, "], the data has ", size, " bytes"),
                  {end, size, -1});
  if (end - begin != bytes)
    return Status(Code::format,
                  text("data_offsets span ", end - begin, " bytes, the shape takes ", bytes),
                  {bytes, end - begin, -1});
  tensor.data = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(bytes));
  return tensor;
}

Status check_overlaps(const std::vector<SafeTensor>& tensors) {
  std::vector<const SafeTensor*> order;
  for (const SafeTensor& tensor : tensors)
    if (!tensor.data.empty()) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const SafeTensor* a, const SafeTensor* b) {
    return a->data.data() < b->data.data();
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->data.data() + order[i - 1]->data.size() > order[i]->data.data())
      return Status(Code::format, text("tensors ", in_quotes(order[i - 1]->name), " and ",
                                       in_quotes(order[i]->name), " overlap"));
  return {};
}

}  // namespace

int64_t safe_type_bytes(SafeType type) {
  return row_of(type).bytes;
}

const char* safe_type_name(SafeType type) {
  return row_of(type).name;
}

Result<std::vector<SafeTensor>> parse_safetensors(std::span<const std::byte> file) {
  uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes)
    return Status(Code::format, text("truncated: the file has ", file.size(), " bytes"));
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const uint64_t rest = file.size() - sizeof header_bytes;
  if (header_bytes > rest || header_bytes > kHeaderBytesMax)
    return Status(Code::format,
                  text("a header of ", header_bytes, " bytes, but ", rest,
                       " follow and the limit is ", kHeaderBytesMax),
                  {static_cast<int64_t>(std::min<uint64_t>(header_bytes, INT64_MAX)),
                   static_cast<int64_t>(rest), static_cast<int64_t>(kHeaderBytesMax)});
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + sizeof header_bytes,
                                static_cast<size_t>(header_bytes));
  Result<json::Value> parsed = json::parse(header);
  if (!parsed.ok()) return Status(Code::format, text("header: ", parsed.status().message()));
  if (parsed->object() == nullptr) return Status(Code::format, "the header is no JSON object");
  const std::span<const std::byte> data =
      file.subspan(sizeof header_bytes + static_cast<size_t>(header_bytes));
  std::vector<SafeTensor> tensors;
  for (const json::Member& member : *parsed->object()) {
    if (member.key == "__metadata__") continue;
    Result<SafeTensor> tensor = read_tensor(member, data);
    if (!tensor.ok()) return tensor.take_status().in(text("tensor ", in_quotes(member.key)));
    tensors.push_back(tensor.take());
  }
  OPTIMA_TRY(check_overlaps(tensors));
  return tensors;
}

}  // namespace optima::model
