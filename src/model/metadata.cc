// The metadata of a GGUF file by key, with the types that a caller asks for, and as text.
#include <algorithm>
#include <type_traits>

#include "base/text.h"
#include "model/model_file.h"

namespace optima::model {
namespace {

// By the order of MetadataValue's alternatives.
constexpr std::string_view kKindNames[] = {"integer",    "float",         "bool",
                                           "string",     "integer array", "float array",
                                           "bool array", "string array"};
static_assert(std::size(kKindNames) == std::variant_size_v<decltype(MetadataValue::value)>);

Status wrong_kind(std::string_view key, const MetadataValue& value, std::string_view wanted) {
  return Status(Code::format, text("metadata key ", in_quotes(key), " is of type ",
                                   kKindNames[value.value.index()], ", not ", wanted));
}

template <typename T>
Result<std::optional<T>> scalar(const Metadata& metadata, std::string_view key,
                                std::string_view wanted) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return std::optional<T>();
  if (const T* found = std::get_if<T>(&value->value)) return std::optional<T>(*found);
  return wrong_kind(key, *value, wanted);
}

template <typename T>
Result<const T*> array(const Metadata& metadata, std::string_view key, std::string_view wanted) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return static_cast<const T*>(nullptr);
  if (const T* found = std::get_if<T>(&value->value)) return found;
  return wrong_kind(key, *value, wanted);
}

void append_item(std::string& out, int64_t item) {
  out += text(item);
}
void append_item(std::string& out, uint8_t item) {
  out += text(item != 0);
}
void append_item(std::string& out, bool item) {
  out += text(item);
}

// Most floats of a file are 32 bits wide there; their short form is the one that a person wrote.
void append_item(std::string& out, double item) {
  const auto narrow = static_cast<float>(item);
  out += static_cast<double>(narrow) == item ? text(narrow) : text(item);
}

void append_item(std::string& out, std::string_view item) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : item) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <typename Items>
std::string array_text(const Items& items, size_t items_max) {
  const size_t shown = std::min(items.size(), items_max);
  std::string out = "[";
  for (size_t i = 0; i < shown; ++i) {
    if (i != 0) out += ", ";
    append_item(out, items[i]);
  }
  if (shown < items.size()) out += text(shown == 0 ? "" : ", ", "... ", items.size(), " items");
  return out + "]";
}

}  // namespace

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

Result<std::optional<int64_t>> Metadata::integer(std::string_view key) const {
  return scalar<int64_t>(*this, key, "integer");
}

Result<std::optional<double>> Metadata::real(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value != nullptr)
    if (const int64_t* whole = std::get_if<int64_t>(&value->value))
      return std::optional<double>(static_cast<double>(*whole));
  return scalar<double>(*this, key, "float");
}

Result<std::optional<bool>> Metadata::boolean(std::string_view key) const {
  return scalar<bool>(*this, key, "bool");
}

Result<std::optional<std::string_view>> Metadata::string(std::string_view key) const {
  return scalar<std::string_view>(*this, key, "string");
}

Result<const MetadataValue::Ints*> Metadata::integers(std::string_view key) const {
  return array<MetadataValue::Ints>(*this, key, "integer array");
}

Result<const MetadataValue::Floats*> Metadata::reals(std::string_view key) const {
  return array<MetadataValue::Floats>(*this, key, "float array");
}

Result<const MetadataValue::Bools*> Metadata::booleans(std::string_view key) const {
  return array<MetadataValue::Bools>(*this, key, "bool array");
}

Result<const MetadataValue::Strings*> Metadata::strings(std::string_view key) const {
  return array<MetadataValue::Strings>(*this, key, "string array");
}

Status Metadata::insert(std::string_view key, MetadataValue value) {
  if (!index_.emplace(key, entries_.size()).second)
    return Status(Code::format, text("metadata key ", in_quotes(key), " appears twice"));
  entries_.emplace_back(key, std::move(value));
  return {};
}

std::string to_string(const MetadataValue& value, size_t items_max) {
  return std::visit(
      [&](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string_view>) {
          return std::string(held);
        } else if constexpr (std::is_arithmetic_v<Held>) {
          std::string out;
          append_item(out, held);
          return out;
        } else {
          return array_text(held, items_max);
        }
      },
      value.value);
}

}  // namespace optima::model
