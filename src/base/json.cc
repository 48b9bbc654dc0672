// Recursive descent over the text, one function per rule of RFC 8259. The depth limit bounds the
// stack both here and in the destructor of the result. Strings are checked as UTF-8 while they are
// copied, so whatever comes out is well-formed.
#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/text.h"
#include "base/utf8.h"

namespace optima::json {
namespace {

constexpr size_t kLinearMembers = 16;  // objects up to this size find equal keys by scanning

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Reader {
 public:
  Reader(std::string_view text, const ReadLimits& limits) : text_(text), limits_(limits) {}

  Result<Value> document() {
    OPTIMA_ASSIGN(Value value, any());
    skip_space();
    if (at_ != text_.size()) return fail("unexpected text after the value");
    return value;
  }

 private:
  Status fail(std::string_view what) const {
    int64_t line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') ++line, line_start = i + 1;
    }
    return {Code::invalid_argument,
            text("JSON: line ", line, ", column ", at_ - line_start + 1, ": ", what)};
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool skip(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  Result<Value> any() {
    skip_space();
    if (at_ >= text_.size()) return fail("unexpected end of the text");
    switch (text_[at_]) {
      case '{':
        return nested(&Reader::object);
      case '[':
        return nested(&Reader::array);
      case '"': {
        OPTIMA_ASSIGN(std::string value, string());
        return Value(std::move(value));
      }
      case 't':
        return word("true", Value(true));
      case 'f':
        return word("false", Value(false));
      case 'n':
        return word("null", Value());
      default:
        return number();
    }
  }

  Result<Value> nested(Result<Value> (Reader::*rule)()) {
    if (depth_ >= limits_.depth_max) {
      return fail(text("nested deeper than the limit of ", limits_.depth_max));
    }
    ++depth_;
    ++at_;  // the bracket
    Result<Value> result = (this->*rule)();
    --depth_;
    return result;
  }

  Result<Value> word(std::string_view expected, Value value) {
    if (text_.substr(at_, expected.size()) != expected) return fail("unknown literal");
    at_ += expected.size();
    return value;
  }

  Result<Value> array() {
    Array items;
    skip_space();
    if (skip(']')) return Value(std::move(items));
    while (true) {
      OPTIMA_ASSIGN(Value item, any());
      items.push_back(std::move(item));
      skip_space();
      if (skip(']')) return Value(std::move(items));
      if (!skip(',')) return fail("expected ',' or ']'");
    }
  }

  Result<Value> object() {
    Object members;
    std::unordered_map<std::string, size_t> places;
    skip_space();
    if (skip('}')) return Value(std::move(members));
    while (true) {
      skip_space();
      if (peek() != '"') return fail("expected a key in double quotes");
      OPTIMA_ASSIGN(std::string key, string());
      skip_space();
      if (!skip(':')) return fail("expected ':'");
      OPTIMA_ASSIGN(Value value, any());
      *slot(members, places, std::move(key)) = std::move(value);
      skip_space();
      if (skip('}')) return Value(std::move(members));
      if (!skip(',')) return fail("expected ',' or '}'");
    }
  }

  // Where the value of `key` goes: the member that has that key already, or a new one.
  static Value* slot(Object& members, std::unordered_map<std::string, size_t>& places,
                     std::string key) {
    if (members.size() < kLinearMembers) {
      for (Member& member : members) {
        if (member.key == key) return &member.value;
      }
    } else {
      if (places.empty()) {
        for (size_t i = 0; i < members.size(); ++i) places.emplace(members[i].key, i);
      }
      const auto [place, is_new] = places.emplace(key, members.size());
      if (!is_new) return &members[place->second].value;
    }
    members.push_back({std::move(key), Value()});
    return &members.back().value;
  }

  Result<std::string> string() {
    ++at_;  // the quote
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        OPTIMA_TRY(escape(out));
      } else if (static_cast<unsigned char>(c) < 0x20) {
        return fail("control character in a string");
      } else {
        const CodePoint point = decode_utf8(text_, at_);
        if (point.byte_count == 0) return fail("invalid UTF-8");
        out.append(text_.substr(at_, point.byte_count));
        at_ += point.byte_count;
      }
    }
    return fail("string without end");
  }

  Status escape(std::string& out) {
    ++at_;  // the backslash
    const char c = peek();
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t i = kNames.find(c); at_ < text_.size() && i != std::string_view::npos) {
      out.push_back(kMeanings[i]);
      ++at_;
      return {};
    }
    if (c != 'u') return fail("unknown escape");
    OPTIMA_ASSIGN(uint32_t unit, hex_unit());
    if (unit >= 0xDC00 && unit <= 0xDFFF) return fail("low surrogate without a high one");
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      if (!(skip('\\') && peek() == 'u')) return fail("high surrogate without a low one");
      OPTIMA_ASSIGN(const uint32_t low, hex_unit());
      if (low < 0xDC00 || low > 0xDFFF) return fail("high surrogate without a low one");
      unit = 0x10000 + ((unit - 0xD800) << 10 | (low - 0xDC00));
    }
    append_utf8(out, unit);
    return {};
  }

  // The four hexadecimal digits after the 'u' at the present place.
  Result<uint32_t> hex_unit() {
    const std::string_view digits = text_.substr(at_ + 1, 4);
    uint32_t unit = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4) {
      return fail("expected four hexadecimal digits");
    }
    at_ += 5;
    return unit;
  }

  size_t skip_digits() {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - start;
  }

  Result<Value> number() {
    const size_t start = at_;
    bool whole = true;
    skip('-');
    if (!is_digit(peek())) return fail("expected a value");
    if (!skip('0')) skip_digits();
    if (skip('.')) {
      whole = false;
      if (skip_digits() == 0) return fail("expected a digit after '.'");
    }
    if (skip('e') || skip('E')) {
      whole = false;
      if (!skip('+')) skip('-');
      if (skip_digits() == 0) return fail("expected a digit in the exponent");
    }
    const std::string_view digits = text_.substr(start, at_ - start);
    const char* const end = digits.data() + digits.size();
    if (int64_t value = 0; whole && std::from_chars(digits.data(), end, value).ec == std::errc()) {
      return Value(value);
    }
    double value = 0;
    if (std::from_chars(digits.data(), end, value).ec != std::errc()) {
      if (magnitude(digits) > 0) return fail("number out of range");
      value = digits[0] == '-' ? -0.0 : 0.0;
    }
    return Value(value);
  }

  // The decimal exponent of the first digit that is not zero, cut to a range wide enough to tell
  // overflow from underflow.
  static int64_t magnitude(std::string_view digits) {
    constexpr int64_t kExponentMax = 1'000'000'000;
    const size_t e = digits.find_first_of("eE");
    int64_t exponent = 0;
    if (e != std::string_view::npos) {
      std::string_view tail = digits.substr(e + 1);
      if (tail[0] == '+') tail.remove_prefix(1);
      const auto result = std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
      if (result.ec != std::errc() || exponent > kExponentMax || exponent < -kExponentMax) {
        exponent = tail[0] == '-' ? -kExponentMax : kExponentMax;
      }
    }
    const std::string_view mantissa = digits.substr(0, e);
    const size_t first = mantissa.find_first_of("123456789");
    const size_t point = std::min(mantissa.find('.'), mantissa.size());
    if (first == std::string_view::npos) return -kExponentMax;
    return exponent + static_cast<int64_t>(point) - static_cast<int64_t>(first);
  }

  std::string_view text_;
  const ReadLimits& limits_;
  size_t at_ = 0;
  int32_t depth_ = 0;
};

}  // namespace

const Value* Value::find(std::string_view key) const {
  const Object* const members = object();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Result<Value> parse(std::string_view text, const ReadLimits& limits) {
  return Reader(text, limits).document();
}

}  // namespace optima::json
