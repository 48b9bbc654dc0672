// Finding filters by name, and the filters on numbers and JSON.
#include "tokenizer/chat_template/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tokenizer/chat_template/from_json.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

bool is_hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The text of a number without the white space and the underscores that Python allows; empty if
// an underscore is out of place.
std::string number_text(std::string_view text) {
  std::string out;
  text = strip(text, Side::both);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && is_hexadecimal(text[i - 1]) && is_hexadecimal(text[i + 1]);
    if (!between) return {};
  }
  if (out.starts_with('+') && out.size() > 1 && out[1] != '-') out.erase(0, 1);
  return out;
}

std::optional<double> parse_real(std::string_view written) {
  const std::string digits = number_text(written);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_whole(std::string_view written, int64_t base) {
  std::string digits = number_text(written);
  const size_t sign = digits.starts_with('-') ? 1 : 0;
  constexpr std::pair<std::string_view, int64_t> kPrefixes[] = {{"0x", 16}, {"0X", 16}, {"0o", 8},
                                                                {"0O", 8},  {"0b", 2},  {"0B", 2}};
  for (const auto& [prefix, meaning] : kPrefixes) {
    if (digits.compare(sign, 2, prefix) != 0 || (base != meaning && base != 0)) continue;
    digits.erase(sign, 2);
    base = meaning;
    if (digits.size() == sign || digits[sign] == '-') return std::nullopt;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                            static_cast<int>(base == 0 ? 10 : base));
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> truncated(double value) {
  if (!(std::fabs(value) < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Result<Value> filter_int(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(auto bound, bind(runtime, "int", arguments, {"default", "base"}, 0));
  const Value otherwise = bound[0].is(Kind::missing) ? Value::integer(0) : bound[0];
  int64_t base = 10;
  if (!bound[1].is(Kind::missing)) {
    OPTIMA_ASSIGN(base, to_index(runtime, bound[1], "'int'"));
    if (base != 0 && (base < 2 || base > 36)) return runtime.fail("'int' needs a base up to 36");
  }
  OPTIMA_TRY(cannot_use_undefined(runtime, input));
  std::optional<int64_t> value;
  if (input.is_whole()) value = input.whole();
  if (input.is(Kind::real)) value = truncated(input.number());
  if (input.is(Kind::string)) {
    OPTIMA_TRY(runtime.tick_bytes(input.text().size()));
    value = parse_whole(input.text(), base);
    if (!value.has_value()) {
      if (const auto real = parse_real(input.text())) value = truncated(*real);
    }
  }
  return value.has_value() ? Value::integer(*value) : otherwise;
}

Result<Value> filter_float(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(auto bound, bind(runtime, "float", arguments, {"default"}, 0));
  OPTIMA_TRY(cannot_use_undefined(runtime, input));
  if (input.is_number()) return Value::real(input.number());
  if (input.is(Kind::string)) {
    OPTIMA_TRY(runtime.tick_bytes(input.text().size()));
    if (const auto value = parse_real(input.text())) return Value::real(*value);
  }
  return bound[0].is(Kind::missing) ? Value::real(0) : bound[0];
}

Result<Value> filter_abs(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "abs", arguments, {}, 0).take_status());
  if (input.is(Kind::real)) return Value::real(std::fabs(input.number()));
  if (input.is_whole() && input.whole() >= 0) return Value::integer(input.whole());
  return negate(runtime, input);
}

Result<Value> filter_round(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(auto bound, bind(runtime, "round", arguments, {"precision", "method"}, 0));
  int64_t digits = 0;
  if (!bound[0].is(Kind::missing)) {
    OPTIMA_ASSIGN(digits, to_index(runtime, bound[0], "'round'"));
  }
  const std::string method = bound[1].is(Kind::string) ? bound[1].text() : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    return runtime.fail("'round' knows the methods common, ceil and floor");
  }
  OPTIMA_TRY(cannot_use_undefined(runtime, input));
  if (!input.is_number()) {
    return runtime.fail(text("'round' needs a number, not '", type_name(input), "'"));
  }
  if (method == "common") {
    if (input.is_whole() && digits >= 0) return Value::integer(input.whole());
    OPTIMA_ASSIGN(const Value rounded, round_real(runtime, input.number(), digits));
    if (!input.is_whole()) return rounded;
    const auto whole = truncated(rounded.number());
    return whole.has_value() ? Value::integer(*whole) : rounded;
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.number() * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result<Value> filter_tojson(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(auto bound, bind(runtime, "tojson", arguments,
                                 {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  JsonStyle style;
  style.ascii_only = is_true(bound[0]);
  style.sort_keys = is_true(bound[3]);
  if (bound[1].is(Kind::string)) {
    style.has_indent = true;
    style.indent = bound[1].text();
  } else if (bound[1].is_whole()) {
    constexpr int64_t kIndentMax = 1024;
    style.has_indent = true;
    style.indent.assign(static_cast<size_t>(std::clamp<int64_t>(bound[1].whole(), 0, kIndentMax)),
                        ' ');
  } else if (!bound[1].is(Kind::missing) && !bound[1].is(Kind::none)) {
    return runtime.fail(text("'tojson': indent of type '", type_name(bound[1]), "'"));
  }
  if (style.has_indent) style.item_separator = ",";
  if (bound[2].is(Kind::sequence)) {
    const std::vector<Value>& pair = bound[2].sequence().items;
    if (pair.size() != 2 || !pair[0].is(Kind::string) || !pair[1].is(Kind::string)) {
      return runtime.fail("'tojson' needs two separators");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  TextBuffer out(runtime);
  OPTIMA_TRY(append_json(runtime, out, input, style));
  return out.take_value();
}

Result<Value> filter_from_json(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "from_json", arguments, {}, 0).take_status());
  if (!input.is(Kind::string)) {
    return runtime.fail(text("'from_json' needs a string, not '", type_name(input), "'"));
  }
  return parse_json_value(runtime, input.text());
}

constexpr FilterEntry kNumberFilters[] = {
    {"abs", filter_abs},     {"int", filter_int},       {"float", filter_float},
    {"round", filter_round}, {"tojson", filter_tojson}, {"from_json", filter_from_json},
};

FilterFunction find_filter(std::string_view name) {
  for (const auto& table : {text_filters(), number_filters(), sequence_filters()}) {
    for (const FilterEntry& entry : table) {
      if (entry.name == name) return entry.function;
    }
  }
  return nullptr;
}

}  // namespace

std::span<const FilterEntry> number_filters() {
  return kNumberFilters;
}

bool has_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Result<Value> call_filter(Runtime& runtime, std::string_view name, const Value& input,
                          const Arguments& arguments) {
  const FilterFunction function = find_filter(name);
  if (function == nullptr) return runtime.fail(text("no filter named '", name, "'"));
  OPTIMA_TRY(runtime.tick());
  const NestingGuard nesting(runtime);  // `map` may call itself by name
  OPTIMA_TRY(nesting.check());
  return function(runtime, input, arguments);
}

}  // namespace optima::tokenizer::jinja
