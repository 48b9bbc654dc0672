// Parses one GGUF file: header, metadata, tensor infos, and where each tensor's data lies.
// The file is taken for hostile. Reading goes strictly forward through GgufCursor; what could
// allocate is first held against the bytes that are left and against a fixed limit; and a tensor
// is handed out only when all of its bytes are inside the file and belong to it alone. Versions 2
// and 3 have the same layout for little-endian files.
#include "model/gguf_part.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/text.h"
#include "model/gguf_cursor.h"

namespace optima::model {
namespace {

// Far above any real file; they bound the memory that a large crafted file can make us use.
constexpr uint64_t kKeysMax = uint64_t{1} << 16;
constexpr uint64_t kTensorsMax = uint64_t{1} << 20;
constexpr uint64_t kArrayItemsMax = uint64_t{1} << 26;
// The specification's own limits.
constexpr size_t kKeyBytesMax = 65535;
constexpr size_t kTensorNameBytesMax = 64;
constexpr uint32_t kRankMax = 4;
constexpr int64_t kAlignmentDefault = 32;
constexpr int64_t kAlignmentMin = 8;
constexpr int64_t kAlignmentMax = int64_t{1} << 20;
// The least bytes that one entry takes: key length, type, value; name length, rank, one
// dimension, type, offset.
constexpr uint64_t kMetadataEntryBytes = 8 + 4 + 1;
constexpr uint64_t kTensorInfoBytes = 8 + 4 + 8 + 4 + 8;

enum class ValueType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};
constexpr auto kValueTypeMax = static_cast<uint32_t>(ValueType::float64);

struct Header {
  uint64_t tensors = 0;
  uint64_t keys = 0;
};

Result<Header> parse_header(GgufCursor& cursor) {
  OPTIMA_ASSIGN(const uint32_t magic, cursor.number<uint32_t>("the magic number"));
  if (magic != 0x46554747u) {  // "GGUF" as a little-endian number
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((magic >> shift) & 0xff);
    return Status(Code::format,
                  text("not a GGUF file: it begins with ", in_quotes(bytes), ", not \"GGUF\""));
  }
  OPTIMA_ASSIGN(const uint32_t version, cursor.number<uint32_t>("the version"));
  if (version == 1)
    return Status(Code::unsupported, "GGUF version 1 is not supported, only versions 2 and 3");
  if (version != 0 && (version & 0xffff) == 0)
    return Status(Code::unsupported,
                  "a big-endian GGUF file is not supported, only little-endian ones");
  if (version != 2 && version != 3)
    return Status(Code::unsupported,
                  text("GGUF version ", version, " is not supported, only versions 2 and 3"));
  Header header;
  OPTIMA_ASSIGN(header.tensors, cursor.number<uint64_t>("the tensor count"));
  OPTIMA_ASSIGN(header.keys, cursor.number<uint64_t>("the metadata count"));
  OPTIMA_TRY(cursor.expect_items("metadata", header.keys, kMetadataEntryBytes));
  OPTIMA_TRY(cursor.expect_items("tensors", header.tensors, kTensorInfoBytes));
  if (header.keys > kKeysMax)
    return Status(Code::format, text(header.keys, " metadata keys, the limit is ", kKeysMax),
                  {static_cast<int64_t>(header.keys), -1, static_cast<int64_t>(kKeysMax)});
  if (header.tensors > kTensorsMax)
    return Status(Code::format, text(header.tensors, " tensors, the limit is ", kTensorsMax),
                  {static_cast<int64_t>(header.tensors), -1, static_cast<int64_t>(kTensorsMax)});
  return header;
}

// Keys and names end up in C strings and in messages.
Result<std::string_view> parse_name(GgufCursor& cursor, std::string_view what, size_t bytes_max) {
  const size_t start = cursor.position();
  OPTIMA_ASSIGN(const std::string_view name, cursor.string(what));
  if (name.empty()) return Status(Code::format, text(what, " at byte ", start, " is empty"));
  if (name.size() > bytes_max)
    return Status(Code::format,
                  text(what, " ", in_quotes(name), " at byte ", start, " has ", name.size(),
                       " bytes, the limit is ", bytes_max),
                  {static_cast<int64_t>(name.size()), -1, static_cast<int64_t>(bytes_max)});
  if (name.find('\0') != std::string_view::npos)
    return Status(Code::format,
                  text(what, " ", in_quotes(name), " at byte ", start, " contains a zero byte"));
  return name;
}

template <typename T>
Result<int64_t> parse_integer(GgufCursor& cursor) {
  const size_t start = cursor.position();
  OPTIMA_ASSIGN(const T value, cursor.number<T>("an integer"));
  if constexpr (sizeof(T) == 8 && T(-1) > T(0)) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return Status(Code::format, text("the integer ", value, " at byte ", start,
                                       " is above the limit of ", INT64_MAX));
  }
  return static_cast<int64_t>(value);
}

template <typename T>
Result<double> parse_real(GgufCursor& cursor) {
  OPTIMA_ASSIGN(const T value, cursor.number<T>("a float"));
  return static_cast<double>(value);
}

Result<bool> parse_bool(GgufCursor& cursor) {
  const size_t start = cursor.position();
  OPTIMA_ASSIGN(const uint8_t value, cursor.number<uint8_t>("a bool"));
  if (value > 1)
    return Status(Code::format,
                  text("the bool at byte ", start, " is ", +value, ", must be 0 or 1"));
  return value == 1;
}

Result<std::string_view> parse_string(GgufCursor& cursor) {
  return cursor.string("a string");
}

// How the values of one type are read: alone, and as items of an array.
struct ValueReader {
  ValueType type;
  uint64_t bytes_min;  // the least bytes that one value takes
  Status (*value)(GgufCursor&, MetadataValue&);
  Status (*array)(GgufCursor&, uint64_t count, MetadataValue&);
};

template <auto parse>
Status read_value(GgufCursor& cursor, MetadataValue& out) {
  OPTIMA_ASSIGN(out.value, parse(cursor));
  return {};
}

template <auto parse, typename Items>
Status read_array(GgufCursor& cursor, uint64_t count, MetadataValue& out) {
  Items items;
  items.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    auto item = parse(cursor);
    if (!item.ok()) return item.take_status().in(text("item ", i));
    items.push_back(static_cast<typename Items::value_type>(item.value()));
  }
  out.value = std::move(items);
  return {};
}

template <auto parse, typename Items>
constexpr ValueReader reader(ValueType type, uint64_t bytes_min) {
  return {type, bytes_min, read_value<parse>, read_array<parse, Items>};
}

constexpr ValueReader kValueReaders[] = {
    reader<parse_integer<uint8_t>, MetadataValue::Ints>(ValueType::uint8, 1),
    reader<parse_integer<int8_t>, MetadataValue::Ints>(ValueType::int8, 1),
    reader<parse_integer<uint16_t>, MetadataValue::Ints>(ValueType::uint16, 2),
    reader<parse_integer<int16_t>, MetadataValue::Ints>(ValueType::int16, 2),
    reader<parse_integer<uint32_t>, MetadataValue::Ints>(ValueType::uint32, 4),
    reader<parse_integer<int32_t>, MetadataValue::Ints>(ValueType::int32, 4),
    reader<parse_integer<uint64_t>, MetadataValue::Ints>(ValueType::uint64, 8),
    reader<parse_integer<int64_t>, MetadataValue::Ints>(ValueType::int64, 8),
    reader<parse_real<float>, MetadataValue::Floats>(ValueType::float32, 4),
    reader<parse_real<double>, MetadataValue::Floats>(ValueType::float64, 8),
    reader<parse_bool, MetadataValue::Bools>(ValueType::boolean, 1),
    reader<parse_string, MetadataValue::Strings>(ValueType::string, 8),
};

const ValueReader* find_reader(uint32_t type) {
  for (const ValueReader& candidate : kValueReaders)
    if (static_cast<uint32_t>(candidate.type) == type) return &candidate;
  return nullptr;
}

Status parse_array(GgufCursor& cursor, MetadataValue& out) {
  OPTIMA_ASSIGN(const uint32_t type, cursor.number<uint32_t>("the item type of an array"));
  if (type == static_cast<uint32_t>(ValueType::array))
    return Status(Code::unsupported, "an array of arrays is not supported");
  const ValueReader* values = find_reader(type);
  if (values == nullptr)
    return Status(Code::format,
                  text("item type id ", type, " is unknown, the highest is ", kValueTypeMax));
  OPTIMA_ASSIGN(const uint64_t count, cursor.number<uint64_t>("the length of an array"));
  OPTIMA_TRY(cursor.expect_items("array", count, values->bytes_min));
  if (count > kArrayItemsMax)
    return Status(Code::format,
                  text("an array of ", count, " items, the limit is ", kArrayItemsMax),
                  {static_cast<int64_t>(count), -1, static_cast<int64_t>(kArrayItemsMax)});
  return values->array(cursor, count, out);
}

Status parse_value(GgufCursor& cursor, MetadataValue& out) {
  OPTIMA_ASSIGN(const uint32_t type, cursor.number<uint32_t>("the type of a value"));
  if (type == static_cast<uint32_t>(ValueType::array)) return parse_array(cursor, out);
  const ValueReader* values = find_reader(type);
  if (values == nullptr)
    return Status(Code::format,
                  text("type id ", type, " is unknown, the highest is ", kValueTypeMax));
  return values->value(cursor, out);
}

Status parse_metadata(GgufCursor& cursor, uint64_t count, Metadata& metadata) {
  for (uint64_t i = 0; i < count; ++i) {
    OPTIMA_ASSIGN(const std::string_view key, parse_name(cursor, "metadata key", kKeyBytesMax));
    MetadataValue value;
    OPTIMA_TRY(parse_value(cursor, value).in(text("metadata key ", in_quotes(key))));
    OPTIMA_TRY(metadata.insert(key, std::move(value)));
  }
  return {};
}

Result<int64_t> parse_alignment(const Metadata& metadata) {
  OPTIMA_ASSIGN(const std::optional<int64_t> value, metadata.integer("general.alignment"));
  const int64_t alignment = value.value_or(kAlignmentDefault);
  if (alignment < kAlignmentMin || alignment > kAlignmentMax ||
      !std::has_single_bit(static_cast<uint64_t>(alignment)))
    return Status(Code::format,
                  text("general.alignment is ", alignment, ", must be a power of two from ",
                       kAlignmentMin, " to ", kAlignmentMax),
                  {alignment, -1, kAlignmentMax});
  return alignment;
}

// A tensor whose offset is still relative to the data section.
struct TensorInfo {
  Tensor tensor;
  uint64_t offset = 0;
};

// Sets shape and rank; the number of values is known to fit int64 afterwards.
Status parse_shape(GgufCursor& cursor, Tensor& tensor) {
  OPTIMA_ASSIGN(const uint32_t rank, cursor.number<uint32_t>("the rank"));
  if (rank < 1 || rank > kRankMax)
    return Status(Code::format, text("rank ", rank, ", must be from 1 to ", kRankMax),
                  {rank, -1, kRankMax});
  tensor.rank = static_cast<int>(rank);
  int64_t values = 1;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    OPTIMA_ASSIGN(const uint64_t length, cursor.number<uint64_t>("a dimension"));
    if (length < 1 || length > static_cast<uint64_t>(INT64_MAX))
      return Status(Code::format,
                    text("dimension ", axis, " is ", length, ", must be from 1 to ", INT64_MAX));
    tensor.shape[axis] = static_cast<int64_t>(length);
    if (values > INT64_MAX / tensor.shape[axis])
      return Status(Code::format, text("the product of its dimensions is above ", INT64_MAX));
    values *= tensor.shape[axis];
  }
  return {};
}

// Sets type and bytes.
Status parse_type(GgufCursor& cursor, Tensor& tensor) {
  OPTIMA_ASSIGN(const uint32_t id, cursor.number<uint32_t>("the type id"));
  const kernels::WeightTypeInfo* info =
      id <= INT32_MAX ? kernels::find_weight_type(static_cast<int32_t>(id)) : nullptr;
  if (info == nullptr)
    return Status(Code::unsupported, text("tensor type id ", id, " is not supported"));
  tensor.type = info->type;
  const int64_t length = tensor.row_length();
  if (length % info->block_values != 0)
    return Status(Code::format,
                  text("row length ", length, " is no multiple of the block of ",
                       info->block_values, " values of type ", std::string_view(info->name)),
                  {length, -1, info->block_values});
  const int64_t blocks = length / info->block_values * tensor.rows();
  if (blocks > INT64_MAX / info->block_bytes)
    return Status(Code::format, text(blocks, " blocks of ", info->block_bytes,
                                     " bytes are more than ", INT64_MAX, " bytes"));
  tensor.bytes = blocks * info->block_bytes;
  return {};
}

Status parse_tensor(GgufCursor& cursor, int64_t alignment, TensorInfo& info) {
  OPTIMA_TRY(parse_shape(cursor, info.tensor));
  OPTIMA_TRY(parse_type(cursor, info.tensor));
  OPTIMA_ASSIGN(info.offset, cursor.number<uint64_t>("the offset"));
  if (info.offset % static_cast<uint64_t>(alignment) != 0)
    return Status(Code::format,
                  text("offset ", info.offset, " is no multiple of the alignment ", alignment));
  return {};
}

Result<std::vector<TensorInfo>> parse_tensors(GgufCursor& cursor, uint64_t count,
                                              int64_t alignment) {
  std::vector<TensorInfo> infos;
  infos.reserve(static_cast<size_t>(count));
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    TensorInfo info;
    OPTIMA_ASSIGN(info.tensor.name, parse_name(cursor, "tensor name", kTensorNameBytesMax));
    const std::string place = text("tensor ", in_quotes(info.tensor.name));
    if (!names.insert(info.tensor.name).second)
      return Status(Code::format, text(place, " appears twice"));
    OPTIMA_TRY(parse_tensor(cursor, alignment, info).in(place));
    infos.push_back(info);
  }
  return infos;
}

// Points each tensor at its data. `data_start` is where the data section begins in the file.
Status place_tensors(std::span<const std::byte> file, uint64_t data_start,
                     std::vector<TensorInfo>& infos) {
  if (data_start > file.size())
    return Status(Code::format,
                  text("truncated: the tensor data begins at byte ", data_start,
                       ", but the file has ", file.size()),
                  {static_cast<int64_t>(data_start), static_cast<int64_t>(file.size()), -1});
  const std::span<const std::byte> data = file.subspan(static_cast<size_t>(data_start));
  if (reinterpret_cast<uintptr_t>(data.data()) % alignof(float) != 0)
    return Status(Code::unsupported,
                  text("the tensor data begins at an address that is no multiple of ",
                       alignof(float), ": the offset or address of the source must be one"));
  for (TensorInfo& info : infos) {
    const auto bytes = static_cast<uint64_t>(info.tensor.bytes);
    if (info.offset > data.size() || bytes > data.size() - info.offset) {
      const uint64_t available = info.offset > data.size() ? 0 : data.size() - info.offset;
      return Status(Code::format,
                    text("tensor ", in_quotes(info.tensor.name), ": ", bytes, " bytes at offset ",
                         info.offset, " wanted, but the data section has ", data.size(), " bytes"),
                    {info.tensor.bytes, static_cast<int64_t>(available), -1});
    }
    info.tensor.data = data.data() + info.offset;
  }
  return {};
}

Status check_overlap(const std::vector<TensorInfo>& infos) {
  std::vector<const TensorInfo*> order;
  order.reserve(infos.size());
  for (const TensorInfo& info : infos) order.push_back(&info);
  std::sort(order.begin(), order.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = *order[i - 1];
    if (order[i]->offset - before.offset < static_cast<uint64_t>(before.tensor.bytes))
      return Status(Code::format, text("tensors ", in_quotes(before.tensor.name), " (",
                                       before.tensor.bytes, " bytes at offset ", before.offset,
                                       ") and ", in_quotes(order[i]->tensor.name), " (at offset ",
                                       order[i]->offset, ") overlap"));
  }
  return {};
}

}  // namespace

Result<GgufPart> parse_gguf_part(std::span<const std::byte> file) {
  GgufCursor cursor(file);
  OPTIMA_ASSIGN(const Header header, parse_header(cursor));
  GgufPart part;
  OPTIMA_TRY(parse_metadata(cursor, header.keys, part.metadata));
  OPTIMA_ASSIGN(const int64_t alignment, parse_alignment(part.metadata));
  OPTIMA_TRY(cursor.expect_items("tensors", header.tensors, kTensorInfoBytes));
  OPTIMA_ASSIGN(std::vector<TensorInfo> infos, parse_tensors(cursor, header.tensors, alignment));
  if (infos.empty()) return part;  // a vocabulary alone; such a file may end without padding

  const auto unit = static_cast<uint64_t>(alignment);
  const uint64_t data_start = (cursor.position() + unit - 1) / unit * unit;
  OPTIMA_TRY(place_tensors(file, data_start, infos));
  OPTIMA_TRY(check_overlap(infos));
  part.tensors.reserve(infos.size());
  for (const TensorInfo& info : infos) part.tensors.push_back(info.tensor);
  return part;
}

}  // namespace optima::model
