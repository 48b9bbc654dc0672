// One pass from left to right. Only constructs that are known to mean the same, or that are
// rewritten to mean the same, come through:
// - \w has marks, letter-like numbers and connectors in it, which PCRE2's lacks; \b goes with it;
// - a script name means the script property, not PCRE2's script extensions;
// - [a&&[^b]] (intersection) becomes a look-ahead before a class;
// - {,n} and what follows a {n,m} (lazy, once more) are Ruby's.
#include "tokenizer/hf/regex_translate.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace optima::tokenizer::hf {
namespace {

// Oniguruma's have the numbers of Latin-1 in them, Rust's the joiners.
constexpr std::string_view kOnigurumaWordItems =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9})"
    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr std::string_view kRustWordItems =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9})"
    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr size_t kPatternBytesMax = 65536;
constexpr size_t kNone = std::string::npos;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class Translator {
 public:
  Translator(std::string_view in, Dialect dialect)
      : in_(in),
        dialect_(dialect),
        word_items_(dialect == Dialect::rust ? kRustWordItems : kOnigurumaWordItems) {}

  Result<std::string> run() {
    if (in_.size() > kPatternBytesMax) {
      return Status(Code::unsupported, text("pattern of ", in_.size(), " bytes"),
                    {.wanted = static_cast<int64_t>(in_.size()), .limit = kPatternBytesMax});
    }
    while (at_ < in_.size()) OPTIMA_TRY(item());
    if (!groups_.empty()) return refuse("a group without end");
    return std::move(out_);
  }

 private:
  Status refuse(std::string_view what) const {
    return {Code::unsupported, text("pattern '", in_, "' at byte ", at_, ": ", what)};
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool skip(std::string_view expected) {
    if (in_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  void begin_atom() { atom_ = out_.size(); }

  Status item() {
    switch (peek()) {
      case '\\':
        return escape();
      case '[':
        return bracket();
      case '(':
        return open_group();
      case ')':
        if (groups_.empty()) return refuse("')' without '('");
        atom_ = groups_.back();
        groups_.pop_back();
        break;
      case '*':
      case '+':
      case '?':
        return quantifier();
      case '{':
        return brace();
      case '|':
      case '^':
      case '$':
        atom_ = kNone;
        break;
      case ']':
      case '}':
        begin_atom();
        out_.push_back('\\');
        break;
      default:
        if ((static_cast<uint8_t>(peek()) & 0xC0) != 0x80) begin_atom();
    }
    out_.push_back(in_[at_++]);
    return {};
  }

  Status quantifier() {
    if (atom_ == kNone) return refuse("nothing to repeat");
    out_.push_back(in_[at_++]);
    if (peek() == '?' || peek() == '+') out_.push_back(in_[at_++]);
    return {};
  }

  Status brace() {
    const size_t close = in_.find('}', at_);
    const std::string_view body =
        close == std::string_view::npos ? std::string_view() : in_.substr(at_ + 1, close - at_ - 1);
    const size_t comma = body.find(',');
    const bool counts = body.find_first_not_of("0123456789,") == std::string_view::npos &&
                        body.find_first_of("0123456789") != std::string_view::npos &&
                        std::count(body.begin(), body.end(), ',') <= 1;
    if (!counts) {
      begin_atom();
      out_.append("\\{");
      ++at_;
      return {};
    }
    if (atom_ == kNone) return refuse("nothing to repeat");
    out_.append("{").append(comma == 0 ? "0" : "").append(body).append("}");
    at_ = close + 1;
    const bool ruby = dialect_ == Dialect::oniguruma;
    const bool range = comma != std::string_view::npos;
    if (peek() == '?' && (range || !ruby)) {
      out_.push_back(in_[at_++]);
    } else if (peek() == '+' && !ruby) {
      out_.push_back(in_[at_++]);
    } else if (peek() == '?' || peek() == '+' || peek() == '*') {
      // Ruby repeats the repetition; to PCRE2 these would be its lazy and possessive forms.
      out_.insert(atom_, "(?:").append(")").push_back(in_[at_++]);
    }
    return {};
  }

  Status open_group() {
    constexpr std::string_view kOpenings[] = {
        "(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?-i:", "(?i-m:"};
    const size_t begin = out_.size();
    if (peek(1) != '?') {
      groups_.push_back(begin);
      out_.append("(");
      ++at_;
    } else if (skip("(?i)")) {
      out_.append("(?i)");
    } else {
      const auto opening =
          std::find_if(std::begin(kOpenings), std::end(kOpenings),
                       [&](std::string_view known) { return in_.substr(at_).starts_with(known); });
      if (opening == std::end(kOpenings)) return refuse("this kind of group");
      groups_.push_back(begin);
      out_.append(*opening == "(?i-m:" ? "(?i:" : *opening);
      at_ += opening->size();
    }
    if (groups_.size() > 100) return refuse("groups nested deeper than 100");
    atom_ = kNone;
    return {};
  }

  Status escape() {
    begin_atom();
    const char c = peek(1);
    switch (c) {
      case 'w':
        out_.append("[").append(word_items_).append("]");
        break;
      case 'W':
        out_.append("[^").append(word_items_).append("]");
        break;
      case 'h':
        out_.append("[0-9a-fA-F]");
        break;
      case 'b':
      case 'B': {
        const std::string word = text("[", word_items_, "]");
        const std::string_view one = c == 'b' ? "!" : "=", other = c == 'b' ? "=" : "!";
        out_.append(
            text("(?:(?<=", word, ")(?", one, word, ")|(?<!", word, ")(?", other, word, "))"));
        atom_ = kNone;
        break;
      }
      case 'A':
      case 'z':
      case 'Z':
        out_.append(in_.substr(at_, 2));
        atom_ = kNone;
        break;
      default:
        return common_escape(out_);
    }
    at_ += 2;
    return {};
  }

  // Escapes that mean the same inside and outside of brackets.
  Status common_escape(std::string& out) {
    const char c = peek(1);
    switch (c) {
      case 'd':
      case 'D':
      case 's':
      case 'S':
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        out.append(in_.substr(at_, 2));
        at_ += 2;
        return {};
      case 'v':
        out.append("\\x0B");
        at_ += 2;
        return {};
      case 'p':
      case 'P':
        return property(out);
      case 'x':
      case 'u':
        return code_point(out);
      default:
        break;
    }
    if (at_ + 1 >= in_.size() || is_alphanumeric(c)) return refuse("this escape");
    if (static_cast<uint8_t>(c) >= 0x80) {  // an escaped letter of another alphabet is itself
      ++at_;
      return {};
    }
    out.append(in_.substr(at_, 2));
    at_ += 2;
    return {};
  }

  Status property(std::string& out) {
    const size_t close = in_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) return refuse("this property");
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    if (name.empty() || !std::all_of(name.begin(), name.end(),
                                     [](char c) { return is_alphanumeric(c) || c == '_'; })) {
      return refuse("this property");
    }
    out.append(in_.substr(at_, 2)).append("{").append(inverted ? "^" : "");
    out.append(name.size() > 2 ? "sc:" : "").append(name).append("}");
    at_ = close + 1;
    return {};
  }

  Status code_point(std::string& out) {
    const bool braces = peek(2) == '{';
    const size_t begin = at_ + (braces ? 3 : 2);
    const size_t digits_max = braces ? 6 : peek(1) == 'u' ? 4 : 2;
    size_t end = begin;
    while (end < in_.size() && end - begin < digits_max && is_hex(in_[end])) ++end;
    const std::string_view digits = in_.substr(begin, end - begin);
    const bool whole = braces ? end < in_.size() && in_[end] == '}' : digits.size() == digits_max;
    // \xE4 is a byte to Oniguruma and a character to PCRE2.
    const bool byte = !braces && peek(1) == 'x' && digits > "7F" && digits != "7f";
    if (digits.empty() || !whole || byte) return refuse("this code point");
    out.append("\\x{").append(digits).append("}");
    at_ = end + (braces ? 1 : 0);
    return {};
  }

  Status bracket() {
    begin_atom();
    std::string made;
    OPTIMA_TRY(char_class(made, 0));
    out_.append(made);
    return {};
  }

  // One [...] with its brackets, as an expression that matches one character.
  Status char_class(std::string& out, int depth) {
    if (depth > 4) return refuse("brackets nested deeper than 4");
    ++at_;  // '['
    const bool inverted = skip("^");
    std::vector<std::string> parts(1);  // between the &&
    std::vector<std::string> nested;
    if (peek() == ']') return refuse("']' that begins a set");
    while (peek() != ']') {
      if (at_ >= in_.size()) return refuse("a set without end");
      if (skip("&&")) {
        parts.emplace_back();
      } else if (peek() == '[') {
        // Only as a whole side of an intersection: a union of sets is not needed by any model.
        const bool alone = parts.size() > 1 && parts.back().empty();
        std::string inner;
        OPTIMA_TRY(char_class(inner, depth + 1));
        if (!alone || (peek() != ']' && peek() != '&')) return refuse("a set in a set");
        nested.push_back(std::move(inner));
        parts.pop_back();
      } else {
        OPTIMA_TRY(class_item(parts.back()));
      }
    }
    ++at_;
    std::string sides;
    for (const std::string& inner : nested) sides.append("(?=").append(inner).append(")");
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].empty()) return refuse("an empty side of an intersection");
      sides.append("(?=[").append(parts[i]).append("])");
    }
    if (parts[0].empty()) return refuse("an empty set");
    if (sides.empty()) {
      out = text("[", inverted ? "^" : "", parts[0], "]");
    } else if (inverted) {
      out = text("(?:(?!", sides, "[", parts[0], "])(?s:.))");
    } else {
      out = text("(?:", sides, "[", parts[0], "])");
    }
    return {};
  }

  Status class_item(std::string& out) {
    if (peek() != '\\') {
      out.push_back(in_[at_++]);
      return {};
    }
    const char c = peek(1);
    if (c == 'b') {
      out.append("\\x08");
      at_ += 2;
      return {};
    }
    if (c == 'w' || c == 'h') {
      out.append(c == 'w' ? word_items_ : "0-9a-fA-F");
      at_ += 2;
    } else {
      OPTIMA_TRY(common_escape(out));
      if (c != 'd' && c != 'D' && c != 's' && c != 'S' && c != 'p' && c != 'P') return {};
    }
    if (peek() == '-') {  // after a class it is no range
      out.append("\\-");
      ++at_;
    }
    return {};
  }

  std::string_view in_;
  Dialect dialect_;
  std::string_view word_items_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = kNone;  // where the last thing that can be repeated begins in out_
  std::vector<size_t> groups_;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern, Dialect dialect) {
  return Translator(pattern, dialect).run();
}

}  // namespace optima::tokenizer::hf
