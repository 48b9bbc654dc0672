// Options for hosts that cannot write C structs: an optima_options object holds the struct of its
// kind and fills it by key. The keys are rows generated from the spec, so that the struct and the
// keys are the same options; the struct is then passed like any other and checked the same way.

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/option_values.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

enum class ValueKind {
  int32,
  int64,
  uint64,
  size,
  real,
  constant,
  pointer,
  text,
  strings,
  ids,
  positions,
  cpus,
  biases
};

struct FieldRow {
  int32_t options;
  const char* key;
  ValueKind kind;
  size_t offset;
  size_t count_offset;
};
struct NameRow {
  int32_t options;
  const char* key;
  const char* name;
  int32_t value;
};
struct FlagRow {
  int32_t options;
  const char* key;
  size_t offset;
  uint32_t bit;
};

constexpr FieldRow kFields[] = {
#define FIELD(options, type, key, kind, field, count) \
  {options, key, ValueKind::kind, offsetof(type, field), offsetof(type, count)},
#define NAMED(options, type, key, name, value)
#define FLAG(options, type, key, field, bit)
#include "abi/option_fields.inc"
};
constexpr NameRow kNames[] = {
#define FIELD(options, type, key, kind, field, count)
#define NAMED(options, type, key, name, value) {options, key, name, value},
#define FLAG(options, type, key, field, bit)
#include "abi/option_fields.inc"
};
constexpr FlagRow kFlags[] = {
#define FIELD(options, type, key, kind, field, count)
#define NAMED(options, type, key, name, value)
#define FLAG(options, type, key, field, bit) {options, key, offsetof(type, field), bit},
#include "abi/option_fields.inc"
};

constexpr size_t kSizes[] = {0,
                             sizeof(optima_engine_options),
                             sizeof(optima_model_options),
                             sizeof(optima_session_options),
                             sizeof(optima_request_desc),
                             sizeof(optima_chat_desc),
                             sizeof(optima_probe_options)};
static_assert(std::size(kSizes) == OPTIMA_OPTIONS_PROBE + 1);

}  // namespace
}  // namespace optima::abi

struct optima_options {
  static constexpr uint32_t kMagic = 0x4f4f'5054;
  static constexpr const char* kName = "options";

  explicit optima_options(int32_t k)
      : kind(k), bytes(std::make_unique<std::byte[]>(optima::abi::kSizes[k])) {
    put(0, static_cast<uint32_t>(optima::abi::kSizes[k]));
  }

  template <typename Value>
  void put(size_t offset, const Value& value) {
    std::memcpy(bytes.get() + offset, &value, sizeof value);
  }
  template <typename Value>
  Value get(size_t offset) const {
    Value value;
    std::memcpy(&value, bytes.get() + offset, sizeof value);
    return value;
  }
  // Keeps a copy of an array and points the field at it.
  template <typename Item>
  void put_array(const optima::abi::FieldRow& row, const std::vector<Item>& items) {
    const auto* data = reinterpret_cast<const std::byte*>(items.data());
    auto& kept = arrays[row.offset];
    kept.assign(data, data + items.size() * sizeof(Item));
    kept.reserve(sizeof(Item));  // An empty list is not NULL.
    put(row.offset, static_cast<const void*>(kept.data()));
    put(row.count_offset, items.size());
  }

  std::atomic<uint32_t> magic{kMagic};
  int32_t kind;
  std::unique_ptr<std::byte[]> bytes;
  std::map<size_t, std::vector<std::byte>> arrays;  // by field offset
  std::map<size_t, std::string> texts;
  std::vector<std::unique_ptr<std::string>> strings;
  std::vector<const char*> string_pointers;
  std::vector<size_t> string_bytes;
};

namespace optima::abi {
namespace {

const FieldRow* find_field(int32_t kind, std::string_view key) {
  for (const FieldRow& row : kFields) {
    if (row.options == kind && key == row.key) return &row;
  }
  return nullptr;
}

const FlagRow* find_flag(int32_t kind, std::string_view key) {
  for (const FlagRow& row : kFlags) {
    if (row.options == kind && key == row.key) return &row;
  }
  return nullptr;
}

Status unknown_key(const optima_options& options, std::string_view key) {
  return Status(Code::unsupported,
                text("options of kind ", options.kind, " have no key '", key, "'"));
}

Result<int32_t> parse_constant(int32_t kind, const FieldRow& row, std::string_view value) {
  std::string known;
  for (const NameRow& name : kNames) {
    if (name.options != kind || std::string_view(name.key) != row.key) continue;
    if (value == name.name) return name.value;
    known.append(known.empty() ? "" : ", ").append(name.name);
  }
  return Status(Code::invalid_argument, text("'", value, "' is none of ", known));
}

template <typename Value>
Status put_value(optima_options& options, size_t offset, Result<Value> value) {
  if (!value.ok()) return value.take_status();
  options.put(offset, *value);
  return {};
}

template <typename Item>
Status put_list(optima_options& options, const FieldRow& row, Result<std::vector<Item>> items) {
  if (!items.ok()) return items.take_status();
  options.put_array(row, *items);
  return {};
}

Status put_text(optima_options& options, const FieldRow& row, std::string_view value) {
  std::string& kept = options.texts[row.offset];
  kept = value;
  options.put(row.offset, kept.c_str());
  options.put(row.count_offset, kept.size());
  return {};
}

// Each set adds one string.
Status add_string(optima_options& options, const FieldRow& row, std::string_view value) {
  options.strings.push_back(std::make_unique<std::string>(value));
  options.string_pointers.push_back(options.strings.back()->c_str());
  options.string_bytes.push_back(value.size());
  options.put(row.offset, options.string_pointers.data());
  options.put(offsetof(optima_request_desc, stop_bytes), options.string_bytes.data());
  options.put(row.count_offset, options.strings.size());
  return {};
}

Status set_field(optima_options& options, const FieldRow& row, std::string_view value) {
  switch (row.kind) {
    case ValueKind::int32:
      return put_value(options, row.offset, parse_number<int32_t>(value));
    case ValueKind::int64:
      return put_value(options, row.offset, parse_number<int64_t>(value));
    case ValueKind::uint64:
    case ValueKind::size:
      return put_value(options, row.offset, parse_number<uint64_t>(value));
    case ValueKind::real:
      return put_value(options, row.offset, parse_number<float>(value));
    case ValueKind::constant:
      return put_value(options, row.offset, parse_constant(options.kind, row, value));
    case ValueKind::text:
      return put_text(options, row, value);
    case ValueKind::strings:
      return add_string(options, row, value);
    case ValueKind::ids:
      return put_list(options, row, parse_list<int32_t>(value));
    case ValueKind::positions:
      return put_list(options, row, parse_list<int64_t>(value));
    case ValueKind::cpus:
      return put_list(options, row, parse_cpus(value));
    case ValueKind::biases:
      return put_list(options, row, parse_biases(value));
    case ValueKind::pointer:
      return Status(Code::invalid_argument, "holds a pointer: use optima_options_set_pointer");
  }
  return Status(Code::internal, "a field of unknown kind");
}

Status set(optima_options& options, std::string_view key, std::string_view value) {
  if (const FlagRow* flag = find_flag(options.kind, key)) {
    auto on = parse_switch(value);
    if (!on.ok()) return on.take_status().in(std::string(key));
    const auto bits = options.get<uint32_t>(flag->offset);
    options.put(flag->offset, *on ? bits | flag->bit : bits & ~flag->bit);
    return {};
  }
  const FieldRow* row = find_field(options.kind, key);
  if (row == nullptr) return unknown_key(options, key);
  return set_field(options, *row, value).in(std::string(key));
}

template <typename Struct>
void init(Struct* out, size_t struct_size) {
  if (out == nullptr || struct_size < sizeof(uint32_t)) return;
  std::memset(static_cast<void*>(out), 0, struct_size);
  out->struct_size = static_cast<uint32_t>(std::min<size_t>(struct_size, UINT32_MAX));
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Status;

void optima_engine_options_init(optima_engine_options* options, size_t struct_size) noexcept {
  guard([&] { init(options, struct_size); });
}

void optima_model_options_init(optima_model_options* options, size_t struct_size) noexcept {
  guard([&] { init(options, struct_size); });
}

void optima_io_init(optima_io* io, size_t struct_size) noexcept {
  guard([&] { init(io, struct_size); });
}

void optima_folder_init(optima_folder* folder, size_t struct_size) noexcept {
  guard([&] { init(folder, struct_size); });
}

void optima_session_options_init(optima_session_options* options, size_t struct_size) noexcept {
  guard([&] { init(options, struct_size); });
}

void optima_request_desc_init(optima_request_desc* desc, size_t struct_size) noexcept {
  guard([&] { init(desc, struct_size); });
}

void optima_chat_desc_init(optima_chat_desc* desc, size_t struct_size) noexcept {
  guard([&] { init(desc, struct_size); });
}

void optima_probe_options_init(optima_probe_options* options, size_t struct_size) noexcept {
  guard([&] { init(options, struct_size); });
}

optima_status optima_options_create(optima_options_kind kind, optima_options** out,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    if (kind < OPTIMA_OPTIONS_ENGINE || kind > OPTIMA_OPTIONS_PROBE) {
      return Status(Code::unsupported,
                    optima::text("kind is ", kind, ", known are ", OPTIMA_OPTIONS_ENGINE, "..",
                                 OPTIMA_OPTIONS_PROBE));
    }
    *out = new optima_options(kind);
    return {};
  });
}

optima_status optima_options_set(optima_options* options, const char* key, size_t key_bytes,
                                 const char* value, size_t value_bytes,
                                 optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_TRY(check(options));
    OPTIMA_ASSIGN(const std::string_view key_text, read_text("key", key, key_bytes));
    OPTIMA_ASSIGN(const std::string_view value_text, read_text("value", value, value_bytes));
    return set(*options, key_text, value_text);
  });
}

optima_status optima_options_set_pointer(optima_options* options, const char* key, size_t key_bytes,
                                         const void* pointer, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_TRY(check(options));
    OPTIMA_ASSIGN(const std::string_view key_text, read_text("key", key, key_bytes));
    const FieldRow* row = find_field(options->kind, key_text);
    if (row == nullptr) return unknown_key(*options, key_text);
    if (row->kind != ValueKind::pointer) {
      return Status(Code::invalid_argument,
                    optima::text(key_text, ": holds no pointer: use optima_options_set"));
    }
    options->put(row->offset, pointer);
    return {};
  });
}

const void* optima_options_struct(const optima_options* options) noexcept {
  return guard(Fallback<const void*>{nullptr},
               [&]() -> const void* { return live(options) ? options->bytes.get() : nullptr; });
}

void optima_options_destroy(optima_options* options) noexcept {
  guard([&] {
    if (live(options) && options->magic.exchange(0) == optima_options::kMagic) delete options;
  });
}
