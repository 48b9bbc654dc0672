// Attributes, items, slices, lengths and iteration, by Jinja's rules: what is not there is
// undefined, and only touching the undefined is an error.
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/chat_template/loop.h"
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

// What one character of a split text costs as a value of its own.
constexpr int64_t kCharacterBytes = sizeof(String) + sizeof(Object) + sizeof(Value) + 16;

bool wrap_index(int64_t& index, int64_t length) {
  if (index < 0) index += length;
  return index >= 0 && index < length;
}

Value bound_method(Runtime& runtime, const Value& value, std::string_view name) {
  const std::string_view method = find_method(value, name);
  if (method.empty()) return {};
  return runtime.heap.adopt(new Method(value, method), sizeof(Method));
}

Result<Value> index_text(Runtime& runtime, const Value& value, int64_t index) {
  const String& string = value.string();
  if (!wrap_index(index, string.length)) return Value();
  if (string.is_ascii()) return runtime.string(string.text.substr(static_cast<size_t>(index), 1));
  OPTIMA_TRY(runtime.tick_bytes(string.text.size()));
  const size_t at = byte_of(string.text, index);
  return runtime.string(string.text.substr(at, decode_utf8(string.text, at).byte_count));
}

Result<Value> index_sequence(const Value& value, int64_t index) {
  const Sequence& sequence = value.sequence();
  if (!sequence.is_indexed()) return Value();
  if (!wrap_index(index, static_cast<int64_t>(sequence.items.size()))) return Value();
  return sequence.items[static_cast<size_t>(index)];
}

// The items of a slice: `count` of them, from `start`, `step` apart.
struct Span {
  int64_t start = 0, step = 1, count = 0;
};

bool is_bound(const Value& value) {
  return value.is(Kind::missing) || value.is(Kind::none) || value.is_whole();
}

Result<Span> resolve_slice(const Runtime& runtime, const SliceBounds& bounds, int64_t length) {
  Span span;
  if (bounds.step.is_whole()) span.step = bounds.step.whole();
  if (span.step == 0) return runtime.fail("a slice with step 0");
  const bool forward = span.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? length : length - 1;
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (!bound.is_whole()) return otherwise;
    const int64_t index = bound.whole();
    return std::clamp(index < 0 ? index + length : index, low, high);
  };
  span.start = clamp(bounds.start, forward ? low : high);
  const int64_t stop = clamp(bounds.stop, forward ? high : low);
  const uint64_t distance = forward
                                ? static_cast<uint64_t>(std::max<int64_t>(stop - span.start, 0))
                                : static_cast<uint64_t>(std::max<int64_t>(span.start - stop, 0));
  const uint64_t stride =
      forward ? static_cast<uint64_t>(span.step) : uint64_t{0} - static_cast<uint64_t>(span.step);
  span.count = distance == 0 ? 0 : static_cast<int64_t>((distance - 1) / stride + 1);
  return span;
}

Result<Value> slice_text(Runtime& runtime, const String& string, const Span& span) {
  OPTIMA_TRY(runtime.tick_bytes(string.text.size()));
  if (span.step == 1) {
    const size_t first =
        string.is_ascii() ? static_cast<size_t>(span.start) : byte_of(string.text, span.start);
    const std::string_view rest = std::string_view(string.text).substr(first);
    const size_t size =
        string.is_ascii() ? static_cast<size_t>(span.count) : byte_of(rest, span.count);
    return runtime.string(std::string(rest.substr(0, size)));
  }
  OPTIMA_TRY(runtime.allow_items(string.length, sizeof(size_t)));
  std::vector<size_t> starts;
  for (size_t at = 0; at < string.text.size();) {
    starts.push_back(at);
    at += std::max(decode_utf8(string.text, at).byte_count, 1u);
  }
  std::string out;
  int64_t index = span.start;
  for (int64_t i = 0; i < span.count; ++i) {
    const size_t at = starts[static_cast<size_t>(index)];
    out.append(string.text, at, decode_utf8(string.text, at).byte_count);
    if (i + 1 < span.count) index += span.step;
  }
  return runtime.string(std::move(out));
}

Result<Value> characters_of(Runtime& runtime, const String& string) {
  OPTIMA_TRY(runtime.allow_items(string.length, kCharacterBytes));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(string.length));
  for (size_t at = 0; at < string.text.size();) {
    const size_t size = std::max(decode_utf8(string.text, at).byte_count, 1u);
    items.push_back(runtime.heap.string(string.text.substr(at, size)));
    at += size;
  }
  return runtime.sequence(Flavor::list, std::move(items));
}

}  // namespace

Result<Value> get_attribute(Runtime& runtime, const Value& value, const std::string& name) {
  OPTIMA_TRY(runtime.tick());
  switch (value.kind()) {
    case Kind::undefined:
      return cannot_use_undefined(runtime, value);
    case Kind::name_space: {
      const Value* const found = value.dict().find(name);
      return found != nullptr ? *found : Value::undefined(&name);
    }
    case Kind::loop:
      return loop_attribute(runtime, value, name);
    case Kind::macro:
      if (name == "name") return runtime.string(macro_name(value));
      return Value::undefined(&name);
    default:
      break;
  }
  Value method = bound_method(runtime, value, name);
  if (!method.is(Kind::undefined)) return method;
  if (value.is(Kind::dict)) {
    if (const Value* const found = value.dict().find(name)) return *found;
  }
  return Value::undefined(&name);
}

Result<Value> get_item(Runtime& runtime, const Value& value, const Value& key) {
  OPTIMA_TRY(runtime.tick());
  OPTIMA_TRY(cannot_use_undefined(runtime, value));
  if (value.is(Kind::dict) && is_hashable(key)) {
    const Value* const found = value.dict().find(key, hash_value(key));
    if (found != nullptr) return *found;
  }
  if (key.is_whole()) {
    if (value.is(Kind::string)) return index_text(runtime, value, key.whole());
    if (value.is(Kind::sequence)) return index_sequence(value, key.whole());
  }
  if (!key.is(Kind::string)) return Value();
  if (value.is(Kind::name_space)) {
    const Value* const found = value.dict().find(key.text());
    return found != nullptr ? *found : Value();
  }
  if (value.is(Kind::loop)) return loop_attribute(runtime, value, key.text());
  return bound_method(runtime, value, key.text());
}

Result<Value> get_slice(Runtime& runtime, const Value& value, const SliceBounds& bounds) {
  OPTIMA_TRY(runtime.tick());
  OPTIMA_TRY(cannot_use_undefined(runtime, value));
  const bool is_indexed = value.is(Kind::sequence) && value.sequence().is_indexed();
  if (!value.is(Kind::string) && !is_indexed) {
    return runtime.fail(text("a value of type '", type_name(value), "' cannot be sliced"));
  }
  if (!is_bound(bounds.start) || !is_bound(bounds.stop) || !is_bound(bounds.step)) {
    return runtime.fail("the bounds of a slice must be integers or none");
  }
  OPTIMA_ASSIGN(const int64_t length, length_of(runtime, value));
  OPTIMA_ASSIGN(const Span span, resolve_slice(runtime, bounds, length));
  if (value.is(Kind::string)) return slice_text(runtime, value.string(), span);
  OPTIMA_TRY(runtime.allow_items(span.count));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(span.count));
  int64_t index = span.start;
  for (int64_t i = 0; i < span.count; ++i) {
    items.push_back(value.sequence().items[static_cast<size_t>(index)]);
    if (i + 1 < span.count) index += span.step;
  }
  OPTIMA_ASSIGN(Value slice, runtime.sequence(value.sequence().flavor, std::move(items)));
  if (value.sequence().flavor == Flavor::range && span.count > 0) {
    const std::vector<Value>& chosen = slice.sequence().items;
    const int64_t last = chosen.back().whole();
    const int64_t step = span.count > 1 ? last - chosen[chosen.size() - 2].whole() : 1;
    slice.sequence().range_stop = last + step;
  }
  return slice;
}

Result<Value> get_path(Runtime& runtime, const Value& value, const Value& path) {
  if (!path.is(Kind::string)) return get_item(runtime, value, path);
  Value item = value;
  for (const std::string_view part : split_at(path.text(), ".", {})) {
    const bool is_number =
        !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == part.npos;
    Value key = Value::integer(is_number ? std::stoll(std::string(part)) : 0);
    if (!is_number) {
      OPTIMA_ASSIGN(key, runtime.string(std::string(part)));
    }
    OPTIMA_ASSIGN(item, get_item(runtime, item, key));
  }
  return item;
}

Result<int64_t> length_of(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return int64_t{0};
    case Kind::string:
      return value.string().length;
    case Kind::dict:
      return static_cast<int64_t>(value.dict().entries.size());
    case Kind::sequence:
      if (value.sequence().flavor == Flavor::generator) break;
      return static_cast<int64_t>(value.sequence().items.size());
    case Kind::loop:
      return loop_length(runtime, value);
    default:
      break;
  }
  return runtime.fail(text("a value of type '", type_name(value), "' has no length"));
}

Result<Value> iterate(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return runtime.sequence(Flavor::list, {});
    case Kind::string:
      return characters_of(runtime, value.string());
    case Kind::dict:
      return dict_view(runtime, value.dict(), Flavor::dict_keys);
    case Kind::sequence: {
      if (value.sequence().flavor != Flavor::generator) return value;
      std::vector<Value> items;
      items.swap(value.sequence().items);
      return runtime.sequence(Flavor::list, std::move(items));
    }
    default:
      return runtime.fail(text("a value of type '", type_name(value), "' is not iterable"));
  }
}

Result<Value> dict_view(Runtime& runtime, const Dict& dict, Flavor flavor) {
  const auto count = static_cast<int64_t>(dict.entries.size());
  const bool has_pairs = flavor == Flavor::dict_items || flavor == Flavor::generator;
  OPTIMA_TRY(
      runtime.allow_items(count, has_pairs ? sizeof(Sequence) + 3 * sizeof(Value) : sizeof(Value)));
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const Dict::Entry& entry : dict.entries) {
    if (has_pairs) {
      items.push_back(runtime.heap.sequence(Flavor::tuple, {entry.first, entry.second}));
    } else {
      items.push_back(flavor == Flavor::dict_values ? entry.second : entry.first);
    }
  }
  return runtime.sequence(flavor, std::move(items));
}

Result<int64_t> to_index(Runtime& runtime, const Value& value, std::string_view what) {
  if (value.is_whole()) return value.whole();
  OPTIMA_TRY(cannot_use_undefined(runtime, value));
  return runtime.fail(text(what, " needs an integer, not '", type_name(value), "'"));
}

}  // namespace optima::tokenizer::jinja
