// Keywords into a Flat, and the questions asked of one. Every keyword is known, an annotation, or
// refused.
#include "sampling/grammar/schema_flat.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sampling/grammar/formats.h"
#include "sampling/grammar/regex.h"

namespace optima::sampling::grammar {
namespace {

constexpr int64_t kSchemasMax = 2'000'000;

Status wrong(const std::string& place, std::string_view what) {
  return {Code::invalid_argument, text("schema, ", place, ": ", what)};
}

Status refused(const std::string& place, std::string_view what) {
  return {Code::unsupported, text("schema, ", place, ": ", what)};
}

std::string token_of(std::string_view name) {  // of a JSON pointer
  std::string out;
  for (const char c : name) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out.push_back(c);
  }
  return out;
}

bool is_annotation(std::string_view name) {
  constexpr std::array kNames{
      std::string_view("title"),           std::string_view("description"),
      std::string_view("default"),         std::string_view("examples"),
      std::string_view("example"),         std::string_view("deprecated"),
      std::string_view("readOnly"),        std::string_view("writeOnly"),
      std::string_view("$schema"),         std::string_view("$comment"),
      std::string_view("$defs"),           std::string_view("definitions"),
      std::string_view("$anchor"),         std::string_view("$vocabulary"),
      std::string_view("contentSchema"),   std::string_view("contentEncoding"),
      std::string_view("contentMediaType")};
  return name.starts_with("x-") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Result<int64_t> count_of(const json::Value& value, const std::string& place) {
  const std::optional<Decimal> decimal = decimal_of(value);
  if (!decimal || !decimal->is_integer() || (decimal->negative && !decimal->is_zero()))
    return wrong(place, "must be a whole number of 0 or more");
  return decimal->integer().value_or(kUnlimited);
}

void tighten_low(std::optional<NumberBound>& bound, NumberBound other) {
  const int order = bound ? other.value.compare(bound->value) : 1;
  if (order > 0 || (order == 0 && other.open)) bound = std::move(other);
}

void tighten_high(std::optional<NumberBound>& bound, NumberBound other) {
  const int order = bound ? other.value.compare(bound->value) : -1;
  if (order < 0 || (order == 0 && other.open)) bound = std::move(other);
}

// The part that belongs to the schema at `place`; a $ref may have come between its keywords.
template <typename Part>
Part& part_at(const std::string& place, std::vector<Part>& parts) {
  const auto known = std::find_if(parts.begin(), parts.end(),
                                  [&](const Part& part) { return part.place == place; });
  if (known != parts.end()) return *known;
  parts.emplace_back();
  parts.back().place = place;
  return parts.back();
}

int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

}  // namespace

std::optional<Decimal> decimal_of(const json::Value& value) {
  if (const int64_t* integer = value.integer()) return Decimal::of(*integer);
  if (const double* real = value.real()) return Decimal::of(*real);
  return std::nullopt;
}

bool equal(const json::Value& a, const json::Value& b) {
  const std::optional<Decimal> x = decimal_of(a), y = decimal_of(b);
  if (x || y) return x && y && x->compare(*y) == 0;
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (a.boolean() || b.boolean()) return a.boolean() && b.boolean() && *a.boolean() == *b.boolean();
  if (a.string() || b.string()) return a.string() && b.string() && *a.string() == *b.string();
  if (a.array() || b.array())
    return a.array() && b.array() &&
           std::equal(a.array()->begin(), a.array()->end(), b.array()->begin(), b.array()->end(),
                      equal);
  if (a.object()->size() != b.object()->size()) return false;
  return std::all_of(a.object()->begin(), a.object()->end(), [&](const json::Member& member) {
    const json::Value* other = b.find(member.key);
    return other != nullptr && equal(member.value, *other);
  });
}

Status SchemaReader::add(const SchemaRef& ref, Flat& flat, int depth) {
  if (flat.place.empty()) flat.place = ref.place;
  if (depth > kDepthMax)
    return refused(ref.place, text("$ref and allOf refer to each other more than ", kDepthMax,
                                   " times before anything is said"));
  if (const bool* always = ref.schema->boolean()) {
    if (!*always) flat.impossible = flat.constrained = true;
    return {};
  }
  if (++added_ > kSchemasMax)
    return Status(Code::unsupported,
                  text("schema, ", ref.place, ": more than ", kSchemasMax,
                       " schemas to look at, references followed"),
                  {added_, -1, kSchemasMax});
  const json::Object* object = ref.schema->object();
  if (object == nullptr) return wrong(ref.place, "a schema is an object, true or false");
  for (const json::Member& member : *object)
    if (!is_annotation(member.key)) OPTIMA_TRY(add_keyword(member, ref, flat, depth));
  return {};
}

Status SchemaReader::add_keyword(const json::Member& member, const SchemaRef& ref, Flat& flat,
                                 int depth) {
  const std::string& key = member.key;
  const std::string place = text(ref.place, '/', token_of(key));
  if (key == "$id") {
    if (ref.schema == &root_) return {};
    return refused(place, "$id inside a schema is not supported");
  }
  if (key == "$ref") {
    OPTIMA_ASSIGN(const SchemaRef target, resolve(member.value, place));
    return add(target, flat, depth + 1);
  }
  if (key == "allOf") return add_all(member.value, place, flat, depth);
  flat.constrained = true;
  if (key == "anyOf" || key == "oneOf") return add_choice(member, place, flat);
  if (key == "type") return add_types(member.value, place, flat);
  if (key == "const") return add_values({{&member.value, place}}, flat);
  if (key == "enum") {
    if (!member.value.array()) return wrong(place, "must be an array");
    std::vector<SchemaRef> values;
    for (const json::Value& value : *member.value.array()) values.push_back({&value, place});
    return add_values(std::move(values), flat);
  }
  if (key == "minLength" || key == "maxLength" || key == "pattern" || key == "format")
    return add_string_keyword(member, place, flat);
  if (key == "minimum" || key == "maximum" || key == "exclusiveMinimum" ||
      key == "exclusiveMaximum" || key == "multipleOf")
    return add_number_keyword(member, place, flat);
  if (key == "properties" || key == "patternProperties" || key == "additionalProperties" ||
      key == "required" || key == "minProperties" || key == "maxProperties")
    return add_object_keyword(member, ref, flat);
  if (key == "items" || key == "prefixItems" || key == "minItems" || key == "maxItems" ||
      key == "uniqueItems")
    return add_array_keyword(member, ref, flat);
  return refused(place, text("the keyword '", key, "' is not supported"));
}

Status SchemaReader::add_types(const json::Value& value, const std::string& place, Flat& flat) {
  constexpr std::array<std::pair<std::string_view, uint8_t>, 7> kNames{
      {{"null", kNull},
       {"boolean", kBoolean},
       {"integer", kInteger},
       {"number", kInteger | kFractional},
       {"string", kString},
       {"array", kArray},
       {"object", kObject}}};
  uint8_t types = 0;
  const auto add_one = [&](const json::Value& name) {
    for (const auto& [known, bits] : kNames) {
      if (name.string() == nullptr || *name.string() != known) continue;
      types |= bits;
      return true;
    }
    return false;
  };
  bool known = true;
  if (value.array())
    for (const json::Value& name : *value.array()) known = known && add_one(name);
  else
    known = add_one(value);
  if (!known) return wrong(place, "names no type");
  flat.types &= types;
  return {};
}

Status SchemaReader::add_values(std::vector<SchemaRef> values, Flat& flat) {
  if (flat.values)
    std::erase_if(values, [&](const SchemaRef& value) {
      return std::none_of(flat.values->begin(), flat.values->end(), [&](const SchemaRef& other) {
        return equal(*value.schema, *other.schema);
      });
    });
  flat.values = std::move(values);
  return {};
}

Status SchemaReader::add_all(const json::Value& value, const std::string& place, Flat& flat,
                             int depth) {
  if (!value.array()) return wrong(place, "must be an array");
  for (size_t i = 0; i < value.array()->size(); ++i)
    OPTIMA_TRY(add({&(*value.array())[i], text(place, '/', i)}, flat, depth + 1));
  return {};
}

Status SchemaReader::add_choice(const json::Member& member, const std::string& place, Flat& flat) {
  if (!member.value.array() || member.value.array()->empty())
    return wrong(place, "must be an array that is not empty");
  Choice choice{{}, member.key == "oneOf", place};
  for (size_t i = 0; i < member.value.array()->size(); ++i)
    choice.branches.push_back({&(*member.value.array())[i], text(place, '/', i)});
  flat.choices.push_back(std::move(choice));
  return {};
}

Status SchemaReader::add_string_keyword(const json::Member& member, const std::string& place,
                                        Flat& flat) {
  if (member.key == "minLength" || member.key == "maxLength") {
    OPTIMA_ASSIGN(const int64_t count, count_of(member.value, place));
    if (member.key == "minLength")
      flat.length_min = std::max(flat.length_min, count);
    else
      flat.length_max = std::min(flat.length_max, count);
    return {};
  }
  if (!member.value.string()) return wrong(place, "must be a string");
  const std::string& value = *member.value.string();
  if (member.key == "pattern") {
    OPTIMA_ASSIGN(auto automaton, pattern(value, RegexMatch::anywhere, place));
    flat.texts.push_back(std::move(automaton));
    return {};
  }
  const std::string expression = format_pattern(value);
  if (expression.empty())
    return refused(place,
                   text("the format '", value, "' is not supported; known: ", known_formats()));
  OPTIMA_ASSIGN(auto automaton, pattern(expression, RegexMatch::whole, place));
  flat.texts.push_back(std::move(automaton));
  return {};
}

Result<std::shared_ptr<const TextAutomaton>> SchemaReader::pattern(const std::string& expression,
                                                                   RegexMatch match,
                                                                   const std::string& place) {
  const std::string key = (match == RegexMatch::whole ? "w" : "a") + expression;
  const auto known = patterns_.find(key);
  if (known != patterns_.end()) return known->second;
  Result<TextAutomaton> automaton = regex_automaton(expression, match, limits_);
  if (!automaton.ok()) return automaton.take_status().in(text("schema, ", place));
  auto kept = std::make_shared<const TextAutomaton>(automaton.take());
  patterns_.emplace(key, kept);
  return std::shared_ptr<const TextAutomaton>(kept);
}

Status SchemaReader::add_number_keyword(const json::Member& member, const std::string& place,
                                        Flat& flat) {
  const std::optional<Decimal> value = decimal_of(member.value);
  if (!value) return wrong(place, "must be a number");
  const std::string& key = member.key;
  if (key == "minimum" || key == "exclusiveMinimum") {
    tighten_low(flat.range.low, {*value, key == "exclusiveMinimum"});
    return {};
  }
  if (key == "maximum" || key == "exclusiveMaximum") {
    tighten_high(flat.range.high, {*value, key == "exclusiveMaximum"});
    return {};
  }
  const std::optional<int64_t> multiple = value->integer();
  if (value->negative || value->is_zero()) return wrong(place, "must be above 0");
  if (!multiple) return refused(place, "multipleOf is supported for whole numbers of 63 bits");
  const int64_t old = std::max<int64_t>(flat.range.multiple, 1);
  const int64_t factor = *multiple / common_divisor(old, *multiple);
  if (factor > std::numeric_limits<int64_t>::max() / 16 / old)
    return refused(place, "the common multiple is beyond 59 bits");
  flat.range.multiple = old * factor;
  return {};
}

Status SchemaReader::add_object_keyword(const json::Member& member, const SchemaRef& ref,
                                        Flat& flat) {
  const std::string place = text(ref.place, '/', member.key);
  if (member.key == "minProperties" || member.key == "maxProperties") {
    OPTIMA_ASSIGN(const int64_t count, count_of(member.value, place));
    if (member.key == "minProperties")
      flat.members_min = std::max(flat.members_min, count);
    else
      flat.members_max = std::min(flat.members_max, count);
    return {};
  }
  if (member.key == "required") {
    if (!member.value.array()) return wrong(place, "must be an array of strings");
    for (const json::Value& name : *member.value.array()) {
      if (!name.string()) return wrong(place, "must be an array of strings");
      flat.required.insert(*name.string());
    }
    return {};
  }
  ObjectPart& part = part_at(ref.place, flat.objects);
  if (member.key == "additionalProperties") {
    part.additional = &member.value;
    return {};
  }
  if (!member.value.object()) return wrong(place, "must be an object");
  if (member.key == "patternProperties") return add_pattern_properties(member.value, place, part);
  part.properties = member.value.object();
  return {};
}

Status SchemaReader::add_pattern_properties(const json::Value& value, const std::string& place,
                                            ObjectPart& part) {
  for (const json::Member& member : *value.object()) {
    const std::string own = text(place, '/', token_of(member.key));
    OPTIMA_ASSIGN(auto names, pattern(member.key, RegexMatch::anywhere, own));
    part.patterns.push_back({std::move(names), {&member.value, own}});
  }
  return {};
}

Status SchemaReader::add_array_keyword(const json::Member& member, const SchemaRef& ref,
                                       Flat& flat) {
  const std::string place = text(ref.place, '/', member.key);
  if (member.key == "uniqueItems") {
    if (member.value.boolean() && !*member.value.boolean()) return {};
    return refused(place, "the keyword 'uniqueItems' is not supported");
  }
  if (member.key == "minItems" || member.key == "maxItems") {
    OPTIMA_ASSIGN(const int64_t count, count_of(member.value, place));
    if (member.key == "minItems")
      flat.items_min = std::max(flat.items_min, count);
    else
      flat.items_max = std::min(flat.items_max, count);
    return {};
  }
  ArrayPart& part = part_at(ref.place, flat.arrays);
  if (member.key == "items") {
    if (member.value.array())
      return refused(place, "an array of schemas is prefixItems since draft 2020-12");
    part.items = &member.value;
    return {};
  }
  if (!member.value.array()) return wrong(place, "must be an array");
  part.prefix = member.value.array();
  return {};
}

}  // namespace optima::sampling::grammar
