// The tests after `is`.
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

using Predicate = bool (*)(const Value&);

bool is_number(const Value& value) {
  return value.is_number();
}

bool is_sequence(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::dict:
      return true;
    case Kind::sequence:
      return value.sequence().is_indexed();
    default:
      return false;
  }
}

bool is_iterable(const Value& value) {
  return is_sequence(value) || value.is(Kind::sequence) || value.is(Kind::loop);
}

bool is_callable(const Value& value) {
  return value.is(Kind::function) || value.is(Kind::macro) || value.is(Kind::method) ||
         value.is(Kind::undefined) || value.is(Kind::loop);
}

constexpr std::pair<std::string_view, Predicate> kPredicates[] = {
    {"defined", [](const Value& v) { return !v.is(Kind::undefined); }},
    {"undefined", [](const Value& v) { return v.is(Kind::undefined); }},
    {"none", [](const Value& v) { return v.is(Kind::none); }},
    {"boolean", [](const Value& v) { return v.is(Kind::boolean); }},
    {"true", [](const Value& v) { return v.is(Kind::boolean) && v.whole() != 0; }},
    {"false", [](const Value& v) { return v.is(Kind::boolean) && v.whole() == 0; }},
    {"integer", [](const Value& v) { return v.is(Kind::integer); }},
    {"float", [](const Value& v) { return v.is(Kind::real); }},
    {"number", is_number},
    {"string", [](const Value& v) { return v.is(Kind::string); }},
    {"mapping", [](const Value& v) { return v.is(Kind::dict); }},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"callable", is_callable},
    {"escaped", [](const Value& v) { return v.is(Kind::string) && v.string().safe; }},
};

constexpr std::pair<std::string_view, Operator> kComparisons[] = {
    {"eq", Operator::equal},         {"equalto", Operator::equal},
    {"==", Operator::equal},         {"ne", Operator::not_equal},
    {"!=", Operator::not_equal},     {"lt", Operator::less},
    {"lessthan", Operator::less},    {"<", Operator::less},
    {"le", Operator::less_equal},    {"<=", Operator::less_equal},
    {"gt", Operator::greater},       {"greaterthan", Operator::greater},
    {">", Operator::greater},        {"ge", Operator::greater_equal},
    {">=", Operator::greater_equal}, {"in", Operator::in},
};

// Those that need the runtime.
constexpr std::string_view kOthers[] = {"odd",   "even",   "divisibleby", "lower",
                                        "upper", "sameas", "filter",      "test"};

Result<bool> is_remainder(Runtime& runtime, const Value& input, const Value& divisor,
                          int64_t expected) {
  OPTIMA_ASSIGN(const Value rest, arithmetic(runtime, Operator::modulo, input, divisor));
  return are_equal(runtime, rest, Value::integer(expected));
}

bool is_same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_object()) return a.object() == b.object();
  return a.is(Kind::none) || (a.is_number() && a.number() == b.number());
}

Result<bool> other_test(Runtime& runtime, std::string_view name, const Value& input,
                        const Arguments& arguments) {
  if (name == "divisibleby" || name == "sameas") {
    OPTIMA_ASSIGN(const auto bound, bind(runtime, name, arguments, {"num"}, 1));
    if (name == "sameas") return is_same(input, bound[0]);
    return is_remainder(runtime, input, bound[0], 0);
  }
  OPTIMA_TRY(bind(runtime, name, arguments, {}, 0).take_status());
  if (name == "odd") return is_remainder(runtime, input, Value::integer(2), 1);
  if (name == "even") return is_remainder(runtime, input, Value::integer(2), 0);
  if (name == "filter") return input.is(Kind::string) && has_filter(input.text());
  if (name == "test") return input.is(Kind::string) && has_test(input.text());
  OPTIMA_ASSIGN(const Value printed, str_of(runtime, input));
  return name == "lower" ? is_all_lower(printed.text()) : is_all_upper(printed.text());
}

template <typename Table>
auto find_in(const Table& table, std::string_view name) {
  for (const auto& entry : table) {
    if (entry.first == name) return &entry;
  }
  return static_cast<decltype(&table[0])>(nullptr);
}

}  // namespace

bool has_test(std::string_view name) {
  if (find_in(kPredicates, name) != nullptr || find_in(kComparisons, name) != nullptr) return true;
  for (const std::string_view other : kOthers) {
    if (other == name) return true;
  }
  return false;
}

Result<bool> call_test(Runtime& runtime, std::string_view name, const Value& input,
                       const Arguments& arguments) {
  if (!has_test(name)) return runtime.fail(text("no test named '", name, "'"));
  OPTIMA_TRY(runtime.tick());
  if (const auto* const entry = find_in(kPredicates, name)) {
    OPTIMA_TRY(bind(runtime, name, arguments, {}, 0).take_status());
    return entry->second(input);
  }
  if (const auto* const entry = find_in(kComparisons, name)) {
    OPTIMA_ASSIGN(const auto bound, bind(runtime, name, arguments, {"other"}, 1));
    return compare(runtime, entry->second, input, bound[0]);
  }
  return other_test(runtime, name, input, arguments);
}

}  // namespace optima::tokenizer::jinja
