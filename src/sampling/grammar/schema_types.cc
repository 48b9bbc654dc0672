// Numbers, strings, arrays and objects under a schema.
#include <algorithm>

#include "base/text.h"
#include "sampling/grammar/schema_compiler.h"

namespace optima::sampling::grammar {
namespace {

constexpr size_t kPatternsMax = 4;  // of patternProperties: every combination is a kind of name
constexpr size_t kMembersMax = 4096;
constexpr int64_t kPrefixMax = 4096;

}  // namespace

void SchemaCompiler::number(const Flat& asked, StateId from, StateId to) {
  NumberRange range = asked.range;
  range.integer = (asked.types & kFractional) == 0 || range.multiple > 0;
  if (range.low || range.high || range.multiple > 1) return write_number(builder_, from, range, to);
  builder_.call(from, range.integer ? rules_.integer() : rules_.number(), to);
}

Status SchemaCompiler::string(const Flat& asked, StateId from, StateId to) {
  const bool counted = asked.length_min > 0 || asked.length_max != kUnlimited;
  if (asked.length_min > asked.length_max) return {};
  if (asked.texts.empty() && !counted) {
    builder_.call(from, rules_.string(), to);
    return {};
  }
  const StateId inside = builder_.state(), end = builder_.state();
  builder_.bytes(from, '"', '"', inside);
  builder_.bytes(end, '"', '"', to);
  if (asked.texts.empty()) {
    builder_.repeat(inside, {rules_.character(), end, asked.length_min, asked.length_max});
    return {};
  }
  TextAutomaton together = *asked.texts.front();
  for (size_t i = 1; i < asked.texts.size(); ++i) {
    Result<TextAutomaton> both = intersection(together, *asked.texts[i]);
    if (!both.ok()) return both.take_status().in(text("schema, ", asked.place));
    together = both.take();
  }
  if (counted) {
    Result<TextAutomaton> cut = of_length(together, asked.length_min, asked.length_max);
    if (!cut.ok()) return cut.take_status().in(text("schema, ", asked.place));
    together = cut.take();
  }
  text_.automaton(inside, together, end);
  return {};
}

Status SchemaCompiler::array(const Flat& asked, StateId from, StateId to) {
  if (asked.items_min > asked.items_max) return {};
  int64_t prefix = 0;
  for (const ArrayPart& part : asked.arrays)
    if (part.prefix) prefix = std::max(prefix, static_cast<int64_t>(part.prefix->size()));
  if (prefix > kPrefixMax)
    return {Code::unsupported,
            text("schema, ", asked.place, ": prefixItems of ", prefix, ", at most ", kPrefixMax),
            {prefix, -1, kPrefixMax}};
  StateId now = builder_.state();
  rules_.open(from, '[', now);
  if (asked.items_min == 0) builder_.bytes(now, ']', ']', to);
  // The items that have a place of their own; the first has one when there is no other, since no
  // comma comes before it.
  const int64_t placed = std::min(std::max<int64_t>(prefix, 1), asked.items_max);
  const Conjunction rest = reader_.item(asked, static_cast<size_t>(prefix));
  const StateId body = builder_.state(), item_start = builder_.state();
  const bool more = placed < asked.items_max;
  if (more || prefix == 0) {
    const StateId item_end = builder_.final_state();
    OPTIMA_TRY(all(rest, item_start, item_end));
    rules_.separator(body, ',', item_start);
  }
  for (int64_t i = 0; i < placed && !builder_.full(); ++i) {
    const StateId after = builder_.state();
    if (i < prefix)
      OPTIMA_TRY(all(reader_.item(asked, static_cast<size_t>(i)), now, after));
    else
      builder_.call(now, item_start, after);
    if (i + 1 >= asked.items_min) rules_.close(after, ']', to);
    if (i + 1 == placed && more) {
      const StateId end = builder_.state();
      const int64_t max = asked.items_max == kUnlimited ? kUnlimited : asked.items_max - placed;
      builder_.repeat(after, {body, end, std::max<int64_t>(asked.items_min - placed, 1), max});
      rules_.close(end, ']', to);
    } else if (i + 1 < placed) {
      now = builder_.state();
      rules_.separator(after, ',', now);
    }
  }
  return {};
}

Object SchemaCompiler::braces(StateId close_target) {
  Object object{};
  object.open = builder_.state();
  object.comma = builder_.state();
  object.close = builder_.state();
  object.close_empty = builder_.state();
  object.max = kUnlimited;
  rules_.open(object.open, '{', builder_.final_state());
  rules_.separator(object.comma, ',', builder_.final_state());
  rules_.close(object.close, '}', close_target);
  builder_.bytes(object.close_empty, '}', '}', close_target);
  return object;
}

Status SchemaCompiler::object(const Flat& asked, StateId from, StateId to) {
  std::vector<std::string> names(asked.required.begin(), asked.required.end());
  for (const ObjectPart& part : asked.objects)
    if (part.properties)
      for (const json::Member& member : *part.properties) names.push_back(member.key);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kMembersMax)
    return {Code::unsupported,
            text("schema, ", asked.place, ": ", names.size(), " properties, at most ", kMembersMax),
            {static_cast<int64_t>(names.size()), -1, static_cast<int64_t>(kMembersMax)}};
  Object object = braces(builder_.final_state());
  object.min = asked.members_min;
  object.max = asked.members_max;
  for (const std::string& name : names) {
    if (builder_.full()) return {};
    const StateId start = builder_.state(), inside = builder_.state(), quote = builder_.state();
    const StateId colon = builder_.state(), value = builder_.state();
    builder_.bytes(start, '"', '"', inside);
    text_.literal(inside, name, quote);
    builder_.bytes(quote, '"', '"', colon);
    rules_.separator(colon, ':', value);
    OPTIMA_TRY(all(reader_.member(asked, name), value, builder_.final_state()));
    object.members.push_back({start, asked.required.contains(name), false});
  }
  OPTIMA_TRY(other_members(asked, names, object));
  OPTIMA_TRY(check_counts(asked, object));
  builder_.object(from, std::move(object), to);
  return {};
}

// One kind of name for each set of patterns that match it.
Status SchemaCompiler::other_members(const Flat& asked, const std::vector<std::string>& names,
                                     Object& object) {
  std::vector<const PatternMember*> patterns;
  for (const ObjectPart& part : asked.objects)
    for (const PatternMember& pattern : part.patterns) patterns.push_back(&pattern);
  if (patterns.size() > kPatternsMax)
    return {Code::unsupported,
            text("schema, ", asked.place, ": ", patterns.size(), " patternProperties, at most ",
                 kPatternsMax),
            {static_cast<int64_t>(patterns.size()), -1, static_cast<int64_t>(kPatternsMax)}};
  const TextAutomaton unlisted = other_than(names);
  for (uint32_t matched = 0; matched < 1u << patterns.size(); ++matched) {
    TextAutomaton kind = unlisted;
    for (size_t i = 0; i < patterns.size(); ++i) {
      Result<TextAutomaton> side =
          (matched >> i & 1) != 0 ? Result(*patterns[i]->names) : complement(*patterns[i]->names);
      if (!side.ok()) return side.take_status().in(text("schema, ", patterns[i]->value.place));
      Result<TextAutomaton> both = intersection(kind, *side);
      if (!both.ok()) return both.take_status().in(text("schema, ", patterns[i]->value.place));
      kind = both.take();
    }
    if (!is_empty(kind)) OPTIMA_TRY(other_member(asked, kind, matched, object));
  }
  return {};
}

Status SchemaCompiler::other_member(const Flat& asked, const TextAutomaton& names, uint32_t matched,
                                    Object& object) {
  Conjunction value;
  uint32_t index = 0;
  for (const ObjectPart& part : asked.objects) {
    bool known = false;
    for (const PatternMember& pattern : part.patterns) {
      if ((matched >> index++ & 1) == 0) continue;
      value.push_back(pattern.value);
      known = true;
    }
    if (!known && part.additional)
      value.push_back({part.additional, text(part.place, "/additionalProperties")});
  }
  for (const SchemaRef& one : value)
    if (one.schema->boolean() && !*one.schema->boolean()) return {};
  const StateId start = builder_.state(), inside = builder_.state(), quote = builder_.state();
  const StateId colon = builder_.state(), begin = builder_.state();
  builder_.bytes(start, '"', '"', inside);
  text_.automaton(inside, names, quote);
  builder_.bytes(quote, '"', '"', colon);
  rules_.separator(colon, ':', begin);
  OPTIMA_TRY(all(value, begin, builder_.final_state()));
  object.members.push_back({start, false, true});
  return {};
}

// Names that are not listed may come twice, and count once.
Status SchemaCompiler::check_counts(const Flat& asked, Object& object) const {
  const bool unlisted = std::any_of(object.members.begin(), object.members.end(),
                                    [](const Member& member) { return member.many; });
  if (!unlisted || object.min <= 1) return {};
  if (object.min <= static_cast<int64_t>(asked.required.size())) {
    object.min = 0;
    return {};
  }
  return {Code::unsupported,
          text("schema, ", asked.place, "/minProperties: ", object.min,
               " is supported only where additionalProperties is false or all are required"),
          {object.min, -1, 1}};
}

}  // namespace optima::sampling::grammar
