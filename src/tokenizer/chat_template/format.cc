// Formatting of values into text: the '%' operator, str.format, and strftime. Conversions that
// templates have no use for are errors, not guesses.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "tokenizer/chat_template/operators.h"

namespace optima::tokenizer::jinja {
namespace {

constexpr int64_t kWidthMax = 100'000;
constexpr int64_t kPrecisionMax = 300;

struct Style {
  char align = 0;  // '<', '>', '^', '=' or 0 for the type's own
  std::string fill = " ";
  char sign = '-';
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

// Reads decimal digits from the front of `text`; -1 when there are none.
int64_t take_number(std::string_view& text, int64_t limit) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return -1;
  int64_t value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = std::min(value * 10 + (text[0] - '0'), limit + 1);
    text.remove_prefix(1);
  }
  return value;
}

Status check_sizes(const Runtime& runtime, const Style& style) {
  if (style.width > kWidthMax || style.precision > kPrecisionMax) {
    return runtime.fail(
        text("format width over ", kWidthMax, " or precision over ", kPrecisionMax));
  }
  return {};
}

Result<std::string> real_digits(const Runtime& runtime, double value, const Style& style) {
  if (!std::isfinite(value)) return real_repr(std::fabs(value));
  const auto precision = static_cast<int>(style.precision < 0 ? 6 : style.precision);
  const auto format = style.type == 'e'   ? std::chars_format::scientific
                      : style.type == 'g' ? std::chars_format::general
                                          : std::chars_format::fixed;
  char buffer[1024];
  const bool percent = style.type == '%';
  const double shown = std::fabs(percent ? value * 100 : value);
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, shown, format,
                                          style.type == 'g' ? std::max(precision, 1) : precision);
  if (error != std::errc()) return runtime.fail("number too long to format");
  return std::string(buffer, end) + (percent ? "%" : "");
}

std::string whole_digits(int64_t value, char type) {
  const uint64_t size =
      value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  char buffer[72];
  std::string digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, size, base).ptr);
  if (type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(), [](char c) {
      return c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  return digits;
}

std::string pad(const std::string& sign, const std::string& body, const Style& style,
                char own_align) {
  const int64_t length = utf8_length(sign) + utf8_length(body);
  const auto missing = static_cast<size_t>(std::max<int64_t>(style.width - length, 0));
  const char align = style.align != 0 ? style.align : own_align;
  const auto fill = [&](size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += style.fill;
    return out;
  };
  if (align == '<') return sign + body + fill(missing);
  if (align == '^') return fill(missing / 2) + sign + body + fill(missing - missing / 2);
  if (align == '=') return sign + fill(missing) + body;
  return fill(missing) + sign + body;
}

std::string sign_text(bool is_negative, char sign) {
  return is_negative ? "-" : sign == '-' ? "" : std::string(1, sign);
}

Result<std::string> format_number(const Runtime& runtime, const Value& value, const Style& style) {
  const bool as_real =
      style.type != 0 && std::string_view("eEfFgG%").find(style.type) != std::string_view::npos;
  const bool is_negative = value.is(Kind::real) ? std::signbit(value.number()) : value.whole() < 0;
  std::string digits;
  if (as_real) {
    OPTIMA_ASSIGN(digits, real_digits(runtime, value.number(), style));
  } else {
    digits = whole_digits(value.whole(), style.type);
  }
  return pad(sign_text(is_negative, style.sign), digits, style, '>');
}

std::string cut(const std::string& text, int64_t length) {
  if (length < 0) return text;
  size_t at = 0;
  for (int64_t i = 0; i < length && at < text.size(); ++i) {
    at += std::max(decode_utf8(text, at).byte_count, 1u);
  }
  return text.substr(0, at);
}

// One conversion of the '%' operator, after its flags have been read.
Result<std::string> convert_percent(Runtime& runtime, const Value& value, const Style& style) {
  OPTIMA_TRY(check_sizes(runtime, style));
  switch (style.type) {
    case 's':
    case 'r': {
      TextBuffer out(runtime);
      OPTIMA_TRY(style.type == 's' ? append_str(runtime, out, value)
                                   : append_repr(runtime, out, value));
      Style text_style = style;
      if (text_style.align == '=') text_style.align = 0, text_style.fill = " ";
      return pad("", cut(out.take(), style.precision), text_style, '>');
    }
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      if (!value.is_number()) break;
      if (value.is(Kind::real) && !(std::fabs(value.number()) < 0x1p63)) break;
      const int64_t whole =
          value.is(Kind::real) ? static_cast<int64_t>(value.number()) : value.whole();
      return format_number(runtime, Value::integer(whole), style);
    }
    case 'f':
    case 'F':
    case 'e':
    case 'g':
      if (!value.is_number()) break;
      return format_number(runtime, value, style);
    default:
      return runtime.fail(text("unknown conversion '%", style.type, "'"));
  }
  OPTIMA_TRY(cannot_use_undefined(runtime, value));
  return runtime.fail(text("'%", style.type, "' needs a number, not '", type_name(value), "'"));
}

// Hands out the arguments of a '%' format in order, or by name.
class PercentArguments {
 public:
  PercentArguments(Runtime& runtime, const Value& given) : runtime_(runtime), given_(given) {
    is_tuple_ = given.is(Kind::sequence) && given.sequence().flavor == Flavor::tuple;
  }
  Result<Value> next() {
    const size_t count = is_tuple_ ? given_.sequence().items.size() : 1;
    if (used_ >= count) return runtime_.fail("not enough arguments for the format");
    return is_tuple_ ? given_.sequence().items[used_++] : (++used_, given_);
  }
  Result<Value> named(std::string_view name) {
    by_name_ = true;
    if (!given_.is(Kind::dict)) return runtime_.fail("the format needs a mapping");
    const Value* const found = given_.dict().find(name);
    if (found == nullptr) return runtime_.fail(text("the format needs '", name, "'"));
    return *found;
  }
  Status finish() const {
    const size_t count = is_tuple_ ? given_.sequence().items.size() : 1;
    if (by_name_ || used_ == count || (given_.is(Kind::dict) && used_ == 0)) return {};
    if (!is_tuple_ && given_.is(Kind::sequence) && given_.sequence().flavor == Flavor::list) {
      return {};
    }
    return runtime_.fail("not all arguments of the format were used");
  }

 private:
  Runtime& runtime_;
  const Value& given_;
  bool is_tuple_ = false;
  bool by_name_ = false;
  size_t used_ = 0;
};

// Reads flags, width, precision and type of a '%' conversion.
Style parse_percent(std::string_view& rest) {
  Style style;
  while (!rest.empty() && std::string_view("-+ 0#").find(rest[0]) != std::string_view::npos) {
    if (rest[0] == '-') style.align = '<', style.fill = " ";
    if (rest[0] == '+' || (rest[0] == ' ' && style.sign != '+')) style.sign = rest[0];
    if (rest[0] == '0' && style.align != '<') style.align = '=', style.fill = "0";
    rest.remove_prefix(1);
  }
  style.width = std::max<int64_t>(take_number(rest, kWidthMax), 0);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    style.precision = std::max<int64_t>(take_number(rest, kPrecisionMax), 0);
  }
  if (!rest.empty()) {
    style.type = rest[0];
    rest.remove_prefix(1);
  }
  return style;
}

// The part of a replacement field after the colon.
Result<Style> parse_spec(const Runtime& runtime, std::string_view spec) {
  Style style;
  constexpr std::string_view kAligns = "<>^=";
  const size_t first = spec.empty() ? 0 : std::max(decode_utf8(spec, 0).byte_count, 1u);
  if (first < spec.size() && kAligns.find(spec[first]) != std::string_view::npos) {
    style.fill = std::string(spec.substr(0, first));
    style.align = spec[first];
    spec.remove_prefix(first + 1);
  } else if (!spec.empty() && kAligns.find(spec[0]) != std::string_view::npos) {
    style.align = spec[0];
    spec.remove_prefix(1);
  }
  if (!spec.empty() && std::string_view("+- ").find(spec[0]) != std::string_view::npos) {
    style.sign = spec[0];
    spec.remove_prefix(1);
  }
  if (spec.starts_with('0')) {
    if (style.align == 0) style.align = '=', style.fill = "0";
    spec.remove_prefix(1);
  }
  style.width = std::max<int64_t>(take_number(spec, kWidthMax), 0);
  if (spec.starts_with('.')) {
    spec.remove_prefix(1);
    style.precision = take_number(spec, kPrecisionMax);
    if (style.precision < 0) return runtime.fail("a format precision is missing");
  }
  if (spec.size() == 1) {
    style.type = spec[0];
  } else if (!spec.empty()) {
    return runtime.fail(text("unknown format '", spec, "'"));
  }
  OPTIMA_TRY(check_sizes(runtime, style));
  return style;
}

Result<std::string> format_field(Runtime& runtime, const Value& value, std::string_view spec) {
  TextBuffer plain(runtime);
  if (spec.empty()) {
    OPTIMA_TRY(append_str(runtime, plain, value));
    return plain.take();
  }
  OPTIMA_ASSIGN(const Style style, parse_spec(runtime, spec));
  constexpr std::string_view kRealTypes = "feFg%";
  constexpr std::string_view kWholeTypes = "dxXob";
  const auto has_type = [&](std::string_view types) {
    return style.type != 0 && types.find(style.type) != std::string_view::npos;
  };
  if (value.is_number() && has_type(kRealTypes)) return format_number(runtime, value, style);
  if (value.is_whole() &&
      (has_type(kWholeTypes) || (style.type == 0 && !value.is(Kind::boolean))) &&
      style.precision < 0) {
    return format_number(runtime, value, style);
  }
  if (value.is(Kind::real) && style.type == 0 && style.precision < 0) {
    const bool is_negative = std::signbit(value.number());
    return pad(sign_text(is_negative, style.sign), real_repr(std::fabs(value.number())), style,
               '>');
  }
  if (value.is(Kind::string) && (style.type == 0 || style.type == 's') && style.align != '=') {
    return pad("", cut(value.text(), style.precision), style, '<');
  }
  return runtime.fail(text("format '", spec, "' does not fit '", type_name(value), "'"));
}

// "{name!r:>8}" without its braces.
Result<std::string> replace_field(Runtime& runtime, std::string_view field, size_t& automatic,
                                  const Arguments& arguments) {
  const size_t colon = std::min(field.find(':'), field.size());
  const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : "";
  std::string_view name = field.substr(0, colon);
  bool as_repr = false;
  if (const size_t mark = name.find('!'); mark != std::string_view::npos) {
    if (name.substr(mark) != "!r" && name.substr(mark) != "!s") {
      return runtime.fail(text("unknown conversion '", name.substr(mark), "'"));
    }
    as_repr = name.substr(mark) == "!r";
    name = name.substr(0, mark);
  }
  std::string_view digits = name;
  int64_t index = take_number(digits, kWidthMax);
  if (name.empty()) index = static_cast<int64_t>(automatic++);
  Value value = Value::missing();
  if (index >= 0 && digits.empty()) {
    if (static_cast<size_t>(index) >= arguments.positional.size()) {
      return runtime.fail(text("'format' has no argument ", index));
    }
    value = arguments.positional[static_cast<size_t>(index)];
  }
  for (const auto& [key, given] : arguments.named) {
    if (key == name) value = given;
  }
  if (value.is(Kind::missing)) return runtime.fail(text("'format' has no argument '", name, "'"));
  if (as_repr) {
    TextBuffer out(runtime);
    OPTIMA_TRY(append_repr(runtime, out, value));
    OPTIMA_ASSIGN(value, out.take_value());
  }
  return format_field(runtime, value, spec);
}

// Days since 1970-01-01 → year, month, day (proleptic Gregorian calendar).
struct Date {
  int64_t year;
  int month, day;
};

Date date_of(int64_t days) {
  days += 719'468;  // to 0000-03-01, so that leap days end a year
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t day_of_era = days - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  const int day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

std::string digits_of(int64_t value, int width, char fill) {
  std::string digits = text(value);
  while (static_cast<int>(digits.size()) < width) digits.insert(digits.begin(), fill);
  return digits;
}

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

struct Moment {
  Date date;
  int64_t hour, minute, second, weekday, day_of_year;
};

// One strftime conversion; empty when it is not known. `width` and `fill` are those of a number.
std::string time_field(const Moment& moment, char code, char fill) {
  const auto number = [&](int64_t value, int width) {
    return digits_of(value, fill == '-' ? 1 : width, fill == '_' ? ' ' : '0');
  };
  const int64_t hour12 = moment.hour % 12 == 0 ? 12 : moment.hour % 12;
  const std::string_view day = kDays[moment.weekday];
  const std::string_view month = kMonths[moment.date.month - 1];
  switch (code) {
    case 'Y':
      return number(moment.date.year, 1);
    case 'y':
      return number(moment.date.year % 100, 2);
    case 'm':
      return number(moment.date.month, 2);
    case 'd':
      return number(moment.date.day, 2);
    case 'e':
      return digits_of(moment.date.day, fill == '-' ? 1 : 2, ' ');
    case 'H':
      return number(moment.hour, 2);
    case 'I':
      return number(hour12, 2);
    case 'M':
      return number(moment.minute, 2);
    case 'S':
      return number(moment.second, 2);
    case 'f':
      return "000000";
    case 'j':
      return number(moment.day_of_year, 3);
    case 'w':
      return number(moment.weekday, 1);
    case 'u':
      return number(moment.weekday == 0 ? 7 : moment.weekday, 1);
    case 'p':
      return moment.hour < 12 ? "AM" : "PM";
    case 'A':
      return std::string(day);
    case 'a':
      return std::string(day.substr(0, 3));
    case 'B':
      return std::string(month);
    case 'b':
    case 'h':
      return std::string(month.substr(0, 3));
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return {};
  }
}

}  // namespace

Result<Value> format_percent(Runtime& runtime, const std::string& format, const Value& arguments) {
  PercentArguments values(runtime, arguments);
  TextBuffer out(runtime);
  std::string_view rest = format;
  while (!rest.empty()) {
    const size_t plain = std::min(rest.find('%'), rest.size());
    OPTIMA_TRY(out.append(rest.substr(0, plain)));
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    std::string_view name;
    const bool by_name = rest.starts_with('(');
    if (by_name) {
      const size_t end = rest.find(')');
      if (end == std::string_view::npos) return runtime.fail("a format name without ')'");
      name = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
    }
    const Style style = parse_percent(rest);
    if (style.type == 0) return runtime.fail("an incomplete format");
    if (style.type == '%') {
      OPTIMA_TRY(out.append("%"));
      continue;
    }
    OPTIMA_ASSIGN(const Value value, by_name ? values.named(name) : values.next());
    OPTIMA_ASSIGN(const std::string piece, convert_percent(runtime, value, style));
    OPTIMA_TRY(out.append(piece));
  }
  OPTIMA_TRY(values.finish());
  return out.take_value();
}

Result<Value> format_braces(Runtime& runtime, const std::string& format,
                            const Arguments& arguments) {
  TextBuffer out(runtime);
  size_t automatic = 0;
  for (size_t at = 0; at < format.size();) {
    const size_t brace = std::min(format.find_first_of("{}", at), format.size());
    OPTIMA_TRY(out.append(std::string_view(format).substr(at, brace - at)));
    at = brace;
    if (at >= format.size()) break;
    if (at + 1 < format.size() && format[at + 1] == format[at]) {
      OPTIMA_TRY(out.append(std::string_view(format).substr(at, 1)));
      at += 2;
      continue;
    }
    const size_t end = format.find_first_of("{}", at + 1);
    if (format[at] == '}' || end == std::string::npos || format[end] == '{') {
      return runtime.fail("'format': a brace without its partner, or nested fields");
    }
    const std::string_view field = std::string_view(format).substr(at + 1, end - at - 1);
    OPTIMA_ASSIGN(const std::string piece, replace_field(runtime, field, automatic, arguments));
    OPTIMA_TRY(out.append(piece));
    at = end + 1;
  }
  return out.take_value();
}

Result<Value> format_time(Runtime& runtime, const std::string& format, int64_t unix_s) {
  constexpr int64_t kDaySeconds = 86'400;
  constexpr int64_t kYear9999 = 253'402'300'799;
  unix_s = std::clamp<int64_t>(unix_s, 0, kYear9999);
  const int64_t days = unix_s / kDaySeconds;
  const int64_t seconds = unix_s % kDaySeconds;
  Moment moment{date_of(days), seconds / 3600, seconds / 60 % 60, seconds % 60, (days + 4) % 7, 0};
  int64_t new_year = days;
  while (date_of(new_year - 1).year == moment.date.year) --new_year;
  moment.day_of_year = days - new_year + 1;
  std::string expanded = format;  // abbreviations of whole dates and times
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"%F", "%Y-%m-%d"}, {"%T", "%H:%M:%S"}, {"%D", "%m/%d/%y"}, {"%R", "%H:%M"}};
  TextBuffer out(runtime);
  for (size_t at = 0; at < expanded.size(); ++at) {
    if (expanded[at] != '%') {
      OPTIMA_TRY(out.append(std::string_view(expanded).substr(at, 1)));
      continue;
    }
    for (const auto& [name, meaning] : kShort) {
      if (expanded.compare(at, 2, name) == 0) expanded.replace(at, 2, meaning);
    }
    char fill = '0';
    if (at + 1 < expanded.size() && (expanded[at + 1] == '-' || expanded[at + 1] == '_')) {
      fill = expanded[++at];
    }
    const std::string piece = ++at < expanded.size() ? time_field(moment, expanded[at], fill) : "";
    if (piece.empty()) return runtime.fail("strftime_now: unknown conversion");
    OPTIMA_TRY(out.append(piece));
  }
  return out.take_value();
}

}  // namespace optima::tokenizer::jinja
