// The rules follow Jinja's own lexer, with the settings under which chat templates are written
// (trim_blocks and lstrip_blocks on). The subtle ones: '{{-1}}' reads as a tag with a strip mark;
// an end of tag inside brackets is no end; the newline after '{% raw %}' stays.
#include "tokenizer/chat_template/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/chat_template/runtime.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

int digit_value(char c) {
  if (is_decimal(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// What the rules of white space depend on; comments and raw marks count as blocks.
enum class Tag : uint8_t { output, block };

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) OPTIMA_TRY(text_and_tag());
    push(TokenKind::end, at_);
    return std::move(tokens_);
  }

 private:
  Status fail(size_t at, std::string_view what) const {
    return {Code::invalid_argument, text("template: ", place_in(source_, at), ": ", what)};
  }

  Token& push(TokenKind kind, size_t at) {
    tokens_.push_back({});
    tokens_.back().kind = kind;
    tokens_.back().at = static_cast<uint32_t>(at);
    return tokens_.back();
  }

  bool looking_at(std::string_view expected, size_t at) const {
    return source_.compare(at, expected.size(), expected) == 0;
  }
  bool looking_at(std::string_view expected) const { return looking_at(expected, at_); }

  size_t next_tag(size_t from) const {
    for (size_t at = source_.find('{', from); at != std::string_view::npos;
         at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return source_.size();
  }

  void skip_space() { at_ += leading_space(source_.substr(at_)); }

  // Adds the plain text up to `end`, where a tag with that strip mark stands.
  void push_text(size_t end, char mark, Tag tag) {
    std::string_view plain = source_.substr(at_, end - at_);
    if (mark == '-') {
      plain.remove_suffix(trailing_space(plain));
    } else if (mark != '+' && tag == Tag::block) {
      const size_t newline = plain.rfind('\n');
      const bool has_newline = newline != std::string_view::npos;
      const size_t line = has_newline ? newline + 1 : 0;
      const std::string_view tail = plain.substr(line);
      if ((has_newline || line_starting_) && leading_space(tail) == tail.size()) {
        plain = plain.substr(0, line);
      }
    }
    if (!plain.empty()) push(TokenKind::text, at_).text = plain;
  }

  char mark_at(size_t at) const {
    const char c = at < source_.size() ? source_[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  Status text_and_tag() {
    const size_t tag = next_tag(at_);
    if (tag == source_.size()) {
      push_text(tag, '+', Tag::output);
      at_ = tag;
      return {};
    }
    const char kind = source_[tag + 1];
    const char mark = mark_at(tag + 2);
    push_text(tag, mark, kind == '{' ? Tag::output : Tag::block);
    at_ = tag + (mark != '\0' ? 3 : 2);
    if (kind == '#') return comment(tag);
    if (kind == '%') {
      const size_t body = raw_body();
      if (body != std::string_view::npos) return raw(tag, body);
    }
    push(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin, tag);
    return tag_body(tag, kind == '{' ? '}' : '%');
  }

  // The end of a tag: its closing mark, what it strips, and whether a line starts behind it.
  void finish_tag(char mark, Tag tag) {
    const size_t before = at_;
    if (mark == '-') {
      skip_space();
    } else if (mark == '\0' && tag == Tag::block && looking_at("\n")) {
      ++at_;
    }
    line_starting_ = at_ > before && source_[at_ - 1] == '\n';
  }

  Status comment(size_t tag) {
    const size_t end = source_.find("#}", at_);
    if (at_ == source_.size()) return {};  // Jinja lets an opening mark at the very end pass
    if (end == std::string_view::npos) return fail(tag, "comment without end");
    const char mark = end > at_ ? mark_at(end - 1) : '\0';
    at_ = end + 2;
    finish_tag(mark, Tag::block);
    return {};
  }

  // Where the text of a raw block begins, if the tag at hand opens one; else npos.
  size_t raw_body() const {
    size_t at = at_ + leading_space(source_.substr(at_));
    if (!looking_at("raw", at)) return std::string_view::npos;
    at += 3;
    at += leading_space(source_.substr(at));
    if (looking_at("-%}", at)) return at + 3 + leading_space(source_.substr(at + 3));
    return looking_at("%}", at) ? at + 2 : std::string_view::npos;
  }

  Status raw(size_t tag, size_t body) {
    line_starting_ = source_[body - 1] == '\n';
    at_ = body;
    if (body == source_.size()) return {};
    for (size_t open = source_.find("{%", body); open != std::string_view::npos;
         open = source_.find("{%", open + 1)) {
      const char mark = mark_at(open + 2);
      size_t at = open + (mark != '\0' ? 3 : 2);
      at += leading_space(source_.substr(at));
      if (!looking_at("endraw", at)) continue;
      at += 6;
      at += leading_space(source_.substr(at));
      const char closing = mark_at(at);
      if (closing != '\0') ++at;
      if (!looking_at("%}", at)) continue;
      push_text(open, mark, Tag::block);
      at_ = at + 2;
      finish_tag(closing, Tag::block);
      return {};
    }
    return fail(tag, "raw block without end");
  }

  Status tag_body(size_t tag, char closing) {
    brackets_.clear();
    while (at_ < source_.size()) {
      if (brackets_.empty() && at_tag_end(closing)) return {};
      const size_t space = leading_space(source_.substr(at_));
      if (space > 0) {
        at_ += space;
      } else if (is_decimal(source_[at_])) {
        OPTIMA_TRY(number());
      } else if (is_name_start(source_[at_])) {
        const size_t start = at_;
        while (at_ < source_.size() && (is_name_start(source_[at_]) || is_decimal(source_[at_]))) {
          ++at_;
        }
        push(TokenKind::name, start).text = source_.substr(start, at_ - start);
      } else if (source_[at_] == '\'' || source_[at_] == '"') {
        OPTIMA_TRY(string());
      } else {
        OPTIMA_TRY(operation());
      }
    }
    return fail(tag, "tag without end");
  }

  bool at_tag_end(char closing) {
    const char end[] = {closing, '}', '\0'};
    const char mark = mark_at(at_);
    const bool marks_allowed = mark == '-' || (mark == '+' && closing == '%');
    const size_t start = at_ + (marks_allowed ? 1 : 0);
    if (!looking_at(end, start)) return false;
    push(closing == '}' ? TokenKind::output_end : TokenKind::block_end, at_);
    at_ = start + 2;
    finish_tag(marks_allowed ? mark : '\0', closing == '%' ? Tag::block : Tag::output);
    return true;
  }

  // Digits of a base, with single underscores between them; empty if there are none.
  std::string take_digits(int base) {
    std::string digits;
    while (at_ < source_.size()) {
      const size_t skip = source_[at_] == '_' && !digits.empty() ? 1 : 0;
      if (at_ + skip >= source_.size() || digit_value(source_[at_ + skip]) >= base) break;
      digits.push_back(source_[at_ + skip]);
      at_ += skip + 1;
    }
    return digits;
  }

  Status number() {
    const size_t start = at_;
    const char prefix =
        start + 1 < source_.size() ? static_cast<char>(source_[start + 1] | 0x20) : '\0';
    if (source_[start] == '0' && (prefix == 'x' || prefix == 'o' || prefix == 'b')) {
      const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : 2;
      at_ += 2;
      const std::string digits = take_digits(base);
      if (!digits.empty()) return push_integer(start, digits, base);
      at_ = start;
    }
    std::string digits = take_digits(10);
    if (take_fraction(start, digits)) {
      double value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size()) {
        return fail(start, "number out of range");
      }
      push(TokenKind::real, start).real = value;
      return {};
    }
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos) {
      return fail(start, "an integer must not start with 0");
    }
    return push_integer(start, digits, 10);
  }

  // Reads ".5", "e3" or ".5e3" behind the digits; false when none follows.
  bool take_fraction(size_t start, std::string& digits) {
    if (start > 0 && source_[start - 1] == '.') return false;  // x.0.1 is two lookups
    const size_t whole_end = at_;
    bool is_real = false;
    if (looking_at(".")) {
      ++at_;
      const std::string fraction = take_digits(10);
      is_real = !fraction.empty();
      if (is_real) {
        digits += "." + fraction;
      } else {
        at_ = whole_end;
      }
    }
    const size_t mantissa_end = at_;
    if (looking_at("e") || looking_at("E")) {
      ++at_;
      const bool negative = looking_at("-");
      if (negative || looking_at("+")) ++at_;
      const std::string exponent = take_digits(10);
      if (!exponent.empty()) {
        digits += (negative ? "e-" : "e") + exponent;
        return true;
      }
      at_ = mantissa_end;
    }
    return is_real;
  }

  Status push_integer(size_t start, const std::string& digits, int base) {
    int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (result.ec != std::errc()) return fail(start, "integer beyond 64 bits");
    push(TokenKind::integer, start).integer = value;
    return {};
  }

  Status string() {
    const size_t start = at_;
    const char quote = source_[at_++];
    std::string meaning;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\') {
        OPTIMA_TRY(escape(meaning));
      } else {
        meaning.push_back(source_[at_++]);
      }
    }
    if (at_ >= source_.size()) return fail(start, "string without end");
    ++at_;
    push(TokenKind::string, start).text = std::move(meaning);
    return {};
  }

  Status escape(std::string& out) {
    const size_t start = at_++;
    if (at_ >= source_.size()) return fail(start, "string without end");
    const char c = source_[at_];
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      out.push_back(kMeanings[i]);
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (digit_value(c) < 8) {
      uint32_t value = 0;
      for (int n = 0; n < 3 && at_ < source_.size() && digit_value(source_[at_]) < 8; ++n) {
        value = value * 8 + static_cast<uint32_t>(digit_value(source_[at_++]));
      }
      append_utf8(out, value);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return hexadecimal(start, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    } else if (c == 'N') {
      return fail(start, "character names are not supported");
    } else {
      out.push_back('\\');  // not an escape: both characters stand
    }
    return {};
  }

  Status hexadecimal(size_t start, int digits, std::string& out) {
    ++at_;
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      if (at_ >= source_.size() || digit_value(source_[at_]) >= 16) {
        return fail(start, "truncated escape");
      }
      value = value << 4 | static_cast<uint32_t>(digit_value(source_[at_]));
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      return fail(start, "escape of no character");
    }
    append_utf8(out, value);
    return {};
  }

  Status operation() {
    constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kSingle = "+-*/%~[](){}><=.:|,";
    const size_t start = at_;
    for (const std::string_view two : kDouble) {
      if (!looking_at(two)) continue;
      at_ += 2;
      push(TokenKind::symbol, start).text = two;
      return {};
    }
    const char c = source_[at_];
    if (kSingle.find(c) == std::string_view::npos) return fail(at_, "unexpected character");
    if (c == '(' || c == '[' || c == '{') {
      brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty() || brackets_.back() != c) {
        return fail(at_, text("unexpected '", c, "'"));
      }
      brackets_.pop_back();
    }
    ++at_;
    push(TokenKind::symbol, start).text = std::string(1, c);
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starting_ = true;
  std::string brackets_;  // the closing brackets awaited
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalise_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

Result<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace optima::tokenizer::jinja
