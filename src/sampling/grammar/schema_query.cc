// References, and whether a given value satisfies a schema: enum and const next to other keywords
// keep the values that do.
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/utf8.h"
#include "sampling/grammar/schema_flat.h"

namespace optima::sampling::grammar {
namespace {

constexpr int kRequiredDepth = 3;  // how far surely_empty() looks into members

// One step of a JSON pointer, unescaped; `fragment` escapes are undone by the caller.
std::string unescaped(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1'))
      out.push_back(token[++i] == '0' ? '~' : '/');
    else
      out.push_back(token[i]);
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

const json::Value* child_of(const json::Value& value, const std::string& token) {
  if (value.object()) return value.find(token);
  if (!value.array()) return nullptr;
  size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size()) return nullptr;
  return index < value.array()->size() ? &(*value.array())[index] : nullptr;
}

uint8_t type_of(const json::Value& value) {
  if (value.is_null()) return kNull;
  if (value.boolean()) return kBoolean;
  if (value.string()) return kString;
  if (value.array()) return kArray;
  if (value.object()) return kObject;
  return decimal_of(value)->is_integer() ? kInteger : kFractional;
}

bool in_range(const NumberRange& range, const Decimal& value) {
  if (range.low) {
    const int order = value.compare(range.low->value);
    if (order < 0 || (order == 0 && range.low->open)) return false;
  }
  if (range.high) {
    const int order = value.compare(range.high->value);
    if (order > 0 || (order == 0 && range.high->open)) return false;
  }
  if (range.multiple == 0) return true;
  int64_t remainder = 0;
  if (!value.is_integer()) return false;
  for (const char digit : value.whole())
    remainder = (remainder * 10 + (digit - '0')) % range.multiple;
  return remainder == 0;
}

bool within(int64_t count, int64_t min, int64_t max) {
  return count >= min && count <= max;
}

}  // namespace

Result<SchemaRef> SchemaReader::resolve(const json::Value& target, const std::string& place) const {
  const auto fail = [&](Code code, std::string_view what) {
    return Status(code, text("schema, ", place, ": ", what));
  };
  if (!target.string()) return fail(Code::invalid_argument, "must be a string");
  const std::string& pointer = *target.string();
  if (pointer != "#" && !pointer.starts_with("#/"))
    return fail(Code::unsupported,
                text("the reference '", pointer, "' is not supported: only # and #/..."));
  const std::string path = percent_decoded(std::string_view(pointer).substr(1));
  const json::Value* value = &root_;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    value = child_of(*value, unescaped(std::string_view(path).substr(at + 1, end - at - 1)));
    if (value == nullptr)
      return fail(Code::invalid_argument, text("there is nothing at '", pointer, "'"));
    at = end;
  }
  return SchemaRef{value, pointer};
}

Result<bool> SchemaReader::follow(SchemaRef& ref) {
  bool moved = false;
  for (int i = 0; i <= kDepthMax; ++i) {
    const json::Object* object = ref.schema->object();
    const json::Value* target = object ? ref.schema->find("$ref") : nullptr;
    if (target == nullptr || object->size() != 1) return moved;
    OPTIMA_ASSIGN(ref, resolve(*target, text(ref.place, "/$ref")));
    moved = true;
  }
  return Status(Code::unsupported, text("schema, ", ref.place, ": more than ", kDepthMax,
                                        " references lead only to each other"));
}

Result<Flat> SchemaReader::flatten(const Conjunction& conjunction) {
  Flat flat;
  for (const SchemaRef& ref : conjunction) OPTIMA_TRY(add(ref, flat));
  return flat;
}

Conjunction SchemaReader::member(const Flat& flat, const std::string& name) const {
  Conjunction all;
  for (const ObjectPart& part : flat.objects) {
    bool known = false;
    if (part.properties != nullptr) {
      for (const json::Member& member : *part.properties) {
        if (member.key != name) continue;
        all.push_back({&member.value, text(part.place, "/properties/", name)});
        known = true;
        break;
      }
    }
    for (const PatternMember& pattern : part.patterns) {
      if (!pattern.names->matches(name)) continue;
      all.push_back(pattern.value);
      known = true;
    }
    if (!known && part.additional != nullptr)
      all.push_back({part.additional, text(part.place, "/additionalProperties")});
  }
  return all;
}

Conjunction SchemaReader::item(const Flat& flat, size_t index) const {
  Conjunction all;
  for (const ArrayPart& part : flat.arrays) {
    if (part.prefix != nullptr && index < part.prefix->size())
      all.push_back({&(*part.prefix)[index], text(part.place, "/prefixItems/", index)});
    else if (part.items != nullptr)
      all.push_back({part.items, text(part.place, "/items")});
  }
  return all;
}

Result<bool> SchemaReader::admits_all(const Conjunction& conjunction, const json::Value& value,
                                      int depth) {
  if (conjunction.empty()) return true;
  OPTIMA_ASSIGN(const Flat flat, flatten(conjunction));
  return admits(flat, value, depth + 1);
}

Result<bool> SchemaReader::admits_choice(const Choice& choice, const json::Value& value,
                                         int depth) {
  int64_t count = 0;
  for (const SchemaRef& branch : choice.branches) {
    OPTIMA_ASSIGN(const bool admitted, admits_all({branch}, value, depth));
    count += admitted;
  }
  return choice.only_one ? count == 1 : count > 0;
}

Result<bool> SchemaReader::admits_object(const Flat& flat, const json::Object& object, int depth) {
  std::set<std::string> names;
  for (const json::Member& member : object) {
    names.insert(member.key);
    OPTIMA_ASSIGN(const bool admitted,
                  admits_all(this->member(flat, member.key), member.value, depth));
    if (!admitted) return false;
  }
  return std::includes(names.begin(), names.end(), flat.required.begin(), flat.required.end()) &&
         within(static_cast<int64_t>(names.size()), flat.members_min, flat.members_max);
}

Result<bool> SchemaReader::admits(const Flat& flat, const json::Value& value, int depth) {
  if (depth > kDepthMax)
    return Status(Code::unsupported, text("schema, ", flat.place, ": a constant nests more than ",
                                          kDepthMax, " deep"));
  if (flat.impossible || (flat.types & type_of(value)) == 0) return false;
  if (flat.values &&
      std::none_of(flat.values->begin(), flat.values->end(),
                   [&](const SchemaRef& other) { return equal(value, *other.schema); }))
    return false;
  for (const Choice& choice : flat.choices) {
    OPTIMA_ASSIGN(const bool admitted, admits_choice(choice, value, depth));
    if (!admitted) return false;
  }
  if (const std::optional<Decimal> number = decimal_of(value)) return in_range(flat.range, *number);
  if (const std::string* string = value.string())
    return within(utf8_length(*string), flat.length_min, flat.length_max) &&
           std::all_of(flat.texts.begin(), flat.texts.end(),
                       [&](const auto& automaton) { return automaton->matches(*string); });
  if (value.object()) return admits_object(flat, *value.object(), depth);
  if (!value.array()) return true;
  const json::Array& items = *value.array();
  for (size_t i = 0; i < items.size(); ++i) {
    OPTIMA_ASSIGN(const bool admitted, admits_all(item(flat, i), items[i], depth));
    if (!admitted) return false;
  }
  return within(static_cast<int64_t>(items.size()), flat.items_min, flat.items_max);
}

Result<bool> SchemaReader::surely_empty(const Flat& flat, int depth) {
  if (flat.impossible || flat.types == 0) return true;
  if (flat.values) {
    for (const SchemaRef& value : *flat.values) {
      OPTIMA_ASSIGN(const bool admitted, admits(flat, *value.schema));
      if (admitted) return false;
    }
    return true;
  }
  if (flat.types != kObject || depth >= kRequiredDepth) return false;
  for (const std::string& name : flat.required) {
    OPTIMA_ASSIGN(const Flat value, flatten(member(flat, name)));
    OPTIMA_ASSIGN(const bool empty, surely_empty(value, depth + 1));
    if (empty) return true;
  }
  return false;
}

}  // namespace optima::sampling::grammar
