// Methods of strings, lists and dicts: the ones templates use and no others. Those that change a
// list or dict are allowed, though the sandbox of the transformers library forbids them, because
// some published templates call them; what they change is this rendering's own copy.
#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/chat_template/loop.h"
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

struct Call {
  Runtime& runtime;
  std::string_view name;
  const Value& self;
  const Arguments& arguments;

  Result<std::vector<Value>> bind_to(std::initializer_list<std::string_view> names,
                                     size_t required) const {
    return bind(runtime, name, arguments, names, required);
  }
  const std::string& text() const { return self.text(); }
  Result<Value> string(std::string_view result) const {
    return runtime.string(std::string(result));
  }
};

using MethodFunction = Result<Value> (*)(const Call&);

struct MethodEntry {
  Kind kind;
  std::string_view name;
  MethodFunction function;
};

Result<std::string_view> text_argument(const Call& call, const Value& value) {
  if (value.is(Kind::string)) return std::string_view(value.text());
  OPTIMA_TRY(cannot_use_undefined(call.runtime, value));
  return call.runtime.fail(text("'", call.name, "' needs a string, not '", type_name(value), "'"));
}

bool is_given(const Value& value) {
  return !value.is(Kind::missing) && !value.is(Kind::none);
}

// --- strings ---

// What a piece of a split text costs as a value of its own.
constexpr int64_t kPieceBytes = sizeof(String) + sizeof(Object) + sizeof(Value);

size_t pieces_max(const Call& call) {
  return static_cast<size_t>(call.runtime.items_max(kPieceBytes));
}

Result<Value> pieces_value(const Call& call, const std::vector<std::string_view>& pieces) {
  OPTIMA_TRY(call.runtime.allow_items(static_cast<int64_t>(pieces.size()), kPieceBytes));
  std::vector<Value> items;
  for (const std::string_view piece : pieces) {
    items.push_back(call.runtime.heap.string(std::string(piece)));
  }
  return call.runtime.sequence(Flavor::list, std::move(items));
}

struct SplitArguments {
  bool has_separator = false;
  std::string_view separator;
  int64_t count_max = -1;
  std::vector<Value> bound;  // keeps the separator alive
};

Result<SplitArguments> split_arguments(const Call& call) {
  SplitArguments split;
  OPTIMA_ASSIGN(split.bound, call.bind_to({"sep", "maxsplit"}, 0));
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  split.has_separator = is_given(split.bound[0]);
  if (split.has_separator) {
    OPTIMA_ASSIGN(split.separator, text_argument(call, split.bound[0]));
    if (split.separator.empty()) return call.runtime.fail("'split' with an empty separator");
  }
  if (!split.bound[1].is(Kind::missing)) {
    OPTIMA_ASSIGN(split.count_max, to_index(call.runtime, split.bound[1], call.name));
  }
  return split;
}

Result<Value> string_split(const Call& call) {
  OPTIMA_ASSIGN(const SplitArguments split, split_arguments(call));
  const SplitLimits limits{split.count_max, pieces_max(call)};
  if (!split.has_separator) return pieces_value(call, split_space(call.text(), limits));
  return pieces_value(call, split_at(call.text(), split.separator, limits));
}

// The last word of a text that does not end in white space.
std::string_view last_word(std::string_view text) {
  const char* const end = text.data() + text.size();
  size_t at = text.size();
  while (at > 0) {
    size_t start = at - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (is_space(decode_utf8(text, start).value)) break;
    at = start;
  }
  return {text.data() + at, static_cast<size_t>(end - text.data()) - at};
}

Result<Value> string_rsplit(const Call& call) {
  OPTIMA_ASSIGN(const SplitArguments split, split_arguments(call));
  std::vector<std::string_view> pieces;
  std::string_view rest = call.text();
  if (!split.has_separator) rest = strip(rest, Side::right);
  const size_t most = pieces_max(call);
  while ((split.count_max < 0 || static_cast<int64_t>(pieces.size()) < split.count_max) &&
         pieces.size() <= most) {
    if (split.has_separator) {
      const size_t at = rest.rfind(split.separator);
      if (at == std::string_view::npos) break;
      pieces.push_back(rest.substr(at + split.separator.size()));
      rest = rest.substr(0, at);
    } else {
      if (rest.empty()) break;
      pieces.push_back(last_word(rest));
      rest = strip(rest.substr(0, rest.size() - pieces.back().size()), Side::right);
    }
  }
  if (split.has_separator || !rest.empty()) pieces.push_back(rest);
  std::reverse(pieces.begin(), pieces.end());
  return pieces_value(call, pieces);
}

template <Side kSide>
Result<Value> string_strip(const Call& call) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"chars"}, 0));
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  if (!is_given(bound[0])) return call.string(strip(call.text(), kSide));
  OPTIMA_ASSIGN(const std::string_view characters, text_argument(call, bound[0]));
  return call.string(strip(call.text(), kSide, characters));
}

// startswith and endswith: `matches` tells for one candidate.
template <typename Matches>
Result<Value> match_any(const Call& call, Matches matches) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"affix"}, 1));
  std::vector<Value> candidates = {bound[0]};
  if (bound[0].is(Kind::sequence) && bound[0].sequence().flavor == Flavor::tuple) {
    candidates = bound[0].sequence().items;
  }
  for (const Value& candidate : candidates) {
    OPTIMA_ASSIGN(const std::string_view affix, text_argument(call, candidate));
    OPTIMA_TRY(call.runtime.tick_bytes(affix.size()));
    if (matches(std::string_view(call.text()), affix)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

bool starts_with(std::string_view text, std::string_view affix) {
  return text.starts_with(affix);
}
bool ends_with(std::string_view text, std::string_view affix) {
  return text.ends_with(affix);
}

Result<Value> string_startswith(const Call& call) {
  return match_any(call, starts_with);
}
Result<Value> string_endswith(const Call& call) {
  return match_any(call, ends_with);
}

template <bool (*kMatches)(std::string_view, std::string_view)>
Result<Value> string_remove(const Call& call) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"affix"}, 1));
  OPTIMA_ASSIGN(const std::string_view affix, text_argument(call, bound[0]));
  std::string_view result = call.text();
  if (kMatches(result, affix)) {
    result =
        result.substr(kMatches == starts_with ? affix.size() : 0, result.size() - affix.size());
  }
  return call.string(result);
}

Result<Value> string_replace(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"old", "new", "count"}, 2));
  Arguments arguments{{bound[0], bound[1]}, {}};
  for (const Value& value : arguments.positional) {
    OPTIMA_TRY(text_argument(call, value).take_status());
  }
  if (!bound[2].is(Kind::missing)) arguments.positional.push_back(bound[2]);
  return call_filter(call.runtime, "replace", call.self, arguments);
}

template <std::string (*kMap)(std::string_view)>
Result<Value> string_map(const Call& call) {
  OPTIMA_TRY(call.bind_to({}, 0).take_status());
  OPTIMA_TRY(call.runtime.tick_bytes(4 * call.text().size()));
  return call.string(kMap(call.text()));
}

Result<Value> string_join(const Call& call) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"iterable"}, 1));
  OPTIMA_ASSIGN(const Value items, iterate(call.runtime, bound[0]));
  TextBuffer out(call.runtime);
  bool is_first = true;
  for (const Value& item : items.sequence().items) {
    OPTIMA_ASSIGN(const std::string_view piece, text_argument(call, item));
    if (!is_first) OPTIMA_TRY(out.append(call.text()));
    OPTIMA_TRY(out.append(piece));
    is_first = false;
  }
  return out.take_value();
}

template <bool kFromRight>
Result<Value> string_find(const Call& call) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"sub"}, 1));
  OPTIMA_ASSIGN(const std::string_view part, text_argument(call, bound[0]));
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  const std::string_view whole = call.text();
  const size_t at = kFromRight ? whole.rfind(part) : whole.find(part);
  if (at == std::string_view::npos) {
    if (call.name == "index") return call.runtime.fail("'index': substring not found");
    return Value::integer(-1);
  }
  return Value::integer(utf8_length(whole.substr(0, at)));
}

Result<Value> string_count(const Call& call) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"sub"}, 1));
  OPTIMA_ASSIGN(const std::string_view part, text_argument(call, bound[0]));
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  return Value::integer(count_of(call.text(), part));
}

Result<Value> string_splitlines(const Call& call) {
  OPTIMA_ASSIGN(const auto bound, call.bind_to({"keepends"}, 0));
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  const LineEnds ends = is_true(bound[0]) ? LineEnds::keep : LineEnds::drop;
  return pieces_value(call, split_lines(call.text(), ends, pieces_max(call)));
}

// isdigit, isalpha, isspace…: every character has the property, and there is one.
template <bool (*kHas)(uint32_t)>
Result<Value> string_all(const Call& call) {
  OPTIMA_TRY(call.bind_to({}, 0).take_status());
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  const std::string& whole = call.text();
  for (size_t at = 0; at < whole.size();) {
    const CodePoint point = decode_utf8(whole, at);
    if (!kHas(point.value)) return Value::boolean(false);
    at += std::max(point.byte_count, 1u);
  }
  return Value::boolean(!whole.empty());
}

template <bool (*kHas)(std::string_view)>
Result<Value> string_has(const Call& call) {
  OPTIMA_TRY(call.bind_to({}, 0).take_status());
  OPTIMA_TRY(call.runtime.tick_bytes(call.text().size()));
  return Value::boolean(kHas(call.text()));
}

bool is_letter_or_digit(uint32_t code_point) {
  return is_letter(code_point) || is_digit(code_point);
}

Result<Value> string_format(const Call& call) {
  return format_braces(call.runtime, call.text(), call.arguments);
}

// --- dicts ---

template <Flavor kFlavor>
Result<Value> dict_list(const Call& call) {
  OPTIMA_TRY(call.bind_to({}, 0).take_status());
  return dict_view(call.runtime, call.self.dict(), kFlavor);
}

Result<Value> dict_get(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"key", "default"}, 1));
  OPTIMA_ASSIGN(const uint64_t hash, hash_of(call.runtime, bound[0]));
  const Value* const found = call.self.dict().find(bound[0], hash);
  if (found != nullptr) return *found;
  return bound[1].is(Kind::missing) ? Value::none() : bound[1];
}

Result<Value> dict_setdefault(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"key", "default"}, 1));
  OPTIMA_ASSIGN(const uint64_t hash, hash_of(call.runtime, bound[0]));
  Dict& dict = call.self.dict();
  if (const Value* const found = dict.find(bound[0], hash)) return *found;
  const Value value = bound[1].is(Kind::missing) ? Value::none() : bound[1];
  dict.set(bound[0], hash, value);
  return value;
}

Result<Value> dict_pop(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"key", "default"}, 1));
  OPTIMA_ASSIGN(const uint64_t hash, hash_of(call.runtime, bound[0]));
  Dict& dict = call.self.dict();
  if (const Value* const found = dict.find(bound[0], hash)) {
    const Value value = *found;
    OPTIMA_TRY(call.runtime.tick(static_cast<int64_t>(dict.entries.size() / 4)));
    dict.erase(bound[0], hash);
    return value;
  }
  if (bound[1].is(Kind::missing)) return call.runtime.fail("'pop': no such key");
  return bound[1];
}

Result<Value> dict_update(const Call& call) {
  OPTIMA_ASSIGN(const Value source, call_global(call.runtime, find_global("dict"), call.arguments));
  for (const auto& [key, value] : source.dict().entries) {
    OPTIMA_TRY(call.runtime.tick());
    call.self.dict().set(key, hash_value(key), value);
  }
  return Value::none();
}

Result<Value> dict_copy(const Call& call) {
  return call_global(call.runtime, find_global("dict"), {{call.self}, {}});
}

// --- lists ---

Status grow_list(const Call& call, std::vector<Value> items, size_t at) {
  Sequence& list = call.self.sequence();
  OPTIMA_TRY(call.runtime.allow_items(static_cast<int64_t>(items.size())));
  list.items.insert(list.items.begin() + static_cast<ptrdiff_t>(at), items.begin(), items.end());
  call.runtime.heap.grow(list, static_cast<int64_t>(items.size() * 2 * sizeof(Value)));
  return {};
}

Result<Value> list_append(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"object"}, 1));
  OPTIMA_TRY(grow_list(call, {bound[0]}, call.self.sequence().items.size()));
  return Value::none();
}

Result<Value> list_extend(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"iterable"}, 1));
  OPTIMA_ASSIGN(const Value items, iterate(call.runtime, bound[0]));
  OPTIMA_TRY(grow_list(call, items.sequence().items, call.self.sequence().items.size()));
  return Value::none();
}

Result<Value> list_insert(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"index", "object"}, 2));
  OPTIMA_ASSIGN(int64_t index, to_index(call.runtime, bound[0], "'insert'"));
  const auto length = static_cast<int64_t>(call.self.sequence().items.size());
  if (index < 0) index = std::max<int64_t>(index + length, 0);
  OPTIMA_TRY(call.runtime.tick(length / 64));
  OPTIMA_TRY(grow_list(call, {bound[1]}, static_cast<size_t>(std::min(index, length))));
  return Value::none();
}

Result<Value> list_pop(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"index"}, 0));
  int64_t index = -1;
  if (!bound[0].is(Kind::missing)) {
    OPTIMA_ASSIGN(index, to_index(call.runtime, bound[0], "'pop'"));
  }
  std::vector<Value>& items = call.self.sequence().items;
  const auto length = static_cast<int64_t>(items.size());
  if (index < 0) index += length;
  if (index < 0 || index >= length) {
    return call.runtime.fail(text("'pop': index beyond a list of ", length));
  }
  OPTIMA_TRY(call.runtime.tick((length - index) / 64));
  Value value = items[static_cast<size_t>(index)];
  items.erase(items.begin() + static_cast<ptrdiff_t>(index));
  return value;
}

Result<Value> list_index(const Call& call) {
  OPTIMA_ASSIGN(auto bound, call.bind_to({"value"}, 1));
  const std::vector<Value>& items = call.self.sequence().items;
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    OPTIMA_ASSIGN(const bool same, are_equal(call.runtime, items[i], bound[0]));
    if (same && call.name == "index") return Value::integer(static_cast<int64_t>(i));
    count += same ? 1 : 0;
  }
  if (call.name == "index") return call.runtime.fail("'index': no such item");
  return Value::integer(count);
}

constexpr MethodEntry kMethods[] = {
    {Kind::string, "split", string_split},
    {Kind::string, "rsplit", string_rsplit},
    {Kind::string, "strip", string_strip<Side::both>},
    {Kind::string, "lstrip", string_strip<Side::left>},
    {Kind::string, "rstrip", string_strip<Side::right>},
    {Kind::string, "startswith", string_startswith},
    {Kind::string, "endswith", string_endswith},
    {Kind::string, "removeprefix", string_remove<starts_with>},
    {Kind::string, "removesuffix", string_remove<ends_with>},
    {Kind::string, "replace", string_replace},
    {Kind::string, "upper", string_map<to_upper>},
    {Kind::string, "lower", string_map<to_lower>},
    {Kind::string, "title", string_map<title_words>},
    {Kind::string, "capitalize", string_map<capitalize>},
    {Kind::string, "format", string_format},
    {Kind::string, "join", string_join},
    {Kind::string, "find", string_find<false>},
    {Kind::string, "rfind", string_find<true>},
    {Kind::string, "index", string_find<false>},
    {Kind::string, "count", string_count},
    {Kind::string, "splitlines", string_splitlines},
    {Kind::string, "isdigit", string_all<is_digit>},
    {Kind::string, "isalpha", string_all<is_letter>},
    {Kind::string, "isalnum", string_all<is_letter_or_digit>},
    {Kind::string, "isspace", string_all<is_space>},
    {Kind::string, "isupper", string_has<is_all_upper>},
    {Kind::string, "islower", string_has<is_all_lower>},
    {Kind::dict, "items", dict_list<Flavor::dict_items>},
    {Kind::dict, "keys", dict_list<Flavor::dict_keys>},
    {Kind::dict, "values", dict_list<Flavor::dict_values>},
    {Kind::dict, "get", dict_get},
    {Kind::dict, "setdefault", dict_setdefault},
    {Kind::dict, "pop", dict_pop},
    {Kind::dict, "update", dict_update},
    {Kind::dict, "copy", dict_copy},
    {Kind::sequence, "append", list_append},
    {Kind::sequence, "extend", list_extend},
    {Kind::sequence, "insert", list_insert},
    {Kind::sequence, "pop", list_pop},
    {Kind::sequence, "index", list_index},
    {Kind::sequence, "count", list_index},
};

const MethodEntry* find_entry(const Value& self, std::string_view name) {
  if (self.is(Kind::sequence)) {
    const Flavor flavor = self.sequence().flavor;
    const bool is_reading = name == "index" || name == "count";
    if (flavor != Flavor::list && !(is_reading && self.sequence().is_indexed())) return nullptr;
  }
  for (const MethodEntry& entry : kMethods) {
    if (entry.kind == self.kind() && entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string_view find_method(const Value& self, std::string_view name) {
  const MethodEntry* const entry = find_entry(self, name);
  return entry != nullptr ? entry->name : std::string_view();
}

Result<Value> call_method(Runtime& runtime, const Method& method, const Arguments& arguments) {
  if (method.self.is(Kind::loop)) return call_loop_method(runtime, method, arguments);
  const MethodEntry* const entry = find_entry(method.self, method.name);
  if (entry == nullptr) return runtime.fail(text("unknown method '", method.name, "'"));
  return entry->function({runtime, method.name, method.self, arguments});
}

}  // namespace optima::tokenizer::jinja
