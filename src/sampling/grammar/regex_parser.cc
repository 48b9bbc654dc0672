// Recursive descent over the pattern; the nesting of groups is bounded.
#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "sampling/grammar/regex_tree.h"

namespace optima::sampling::grammar {
namespace {

constexpr int64_t kCountMax = 1'000'000'000'000;
constexpr int64_t kAtomsMax = 20'000;

CodePointSet digits() {
  return CodePointSet({{'0', '9'}});
}
CodePointSet word_characters() {
  return CodePointSet({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}});
}
CodePointSet spaces() {  // ECMA-262's WhiteSpace and LineTerminator
  return CodePointSet({{0x09, 0x0D},
                       {0x20, 0x20},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000},
                       {0xFEFF, 0xFEFF}});
}

bool is_letter_or_digit(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Parser {
 public:
  Parser(std::string_view pattern, int64_t nesting_max)
      : pattern_(pattern), nesting_max_(nesting_max) {}

  Result<RegexNode> all() {
    const size_t valid = utf8_valid_prefix(pattern_);
    if (valid != pattern_.size()) {
      at_ = valid;
      return wrong("bytes that are no UTF-8");
    }
    OPTIMA_ASSIGN(RegexNode node, choice());
    if (at_ != pattern_.size()) return wrong("')' without '('");
    return node;
  }

 private:
  Status wrong(std::string_view what) const {
    return {Code::invalid_argument, text("pattern, byte ", at_, ": ", what)};
  }
  Status refused(std::string_view what) const {
    return {Code::unsupported, text("pattern, byte ", at_, ": ", what, " is not supported")};
  }
  bool done() const { return at_ >= pattern_.size(); }
  bool next_is(std::string_view s) const { return pattern_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!next_is(s)) return false;
    at_ += s.size();
    return true;
  }
  uint32_t take_code_point() {
    const CodePoint point = decode_utf8(pattern_, at_);
    at_ += point.byte_count;
    return point.value;
  }

  Result<RegexNode> choice() {
    RegexNode node;
    node.kind = RegexNode::Kind::choice;
    do {
      OPTIMA_ASSIGN(RegexNode part, sequence());
      node.parts.push_back(std::move(part));
    } while (take("|"));
    if (node.parts.size() > 1) return node;
    RegexNode only = std::move(node.parts.front());
    return only;
  }

  Result<RegexNode> sequence() {
    RegexNode node;
    while (!done() && !next_is("|") && !next_is(")")) {
      OPTIMA_ASSIGN(RegexNode part, atom());
      OPTIMA_ASSIGN(part, quantified(std::move(part)));
      node.parts.push_back(std::move(part));
    }
    return node;
  }

  Result<RegexNode> quantified(RegexNode part) {
    int64_t min = 0, max = kUnlimited;
    const size_t start = at_;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (next_is("{")) {
      OPTIMA_ASSIGN(const bool is_count, count(min, max));
      if (!is_count) return part;
    } else {
      return part;
    }
    if (part.kind == RegexNode::Kind::text_start || part.kind == RegexNode::Kind::text_end) {
      at_ = start;
      return wrong("a quantifier after an anchor");
    }
    take("?");  // lazy
    if (next_is("+")) return refused("a possessive quantifier");
    if (next_is("*") || next_is("?")) return wrong("a quantifier after a quantifier");
    RegexNode node;
    node.kind = RegexNode::Kind::repeat;
    node.min = min;
    node.max = max;
    node.parts.push_back(std::move(part));
    return node;
  }

  // {m}, {m,}, {m,n}; anything else that starts with a brace is a literal.
  Result<bool> count(int64_t& min, int64_t& max) {
    const size_t start = at_;
    ++at_;
    const auto number = [&](int64_t& value) {
      const size_t first = at_;
      for (value = 0; !done() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_)
        value = std::min<int64_t>(value * 10 + (pattern_[at_] - '0'), kCountMax);
      return at_ != first;
    };
    bool proper = number(min);
    if (proper) {
      max = min;
      if (take(",") && !number(max)) max = kUnlimited;
      proper = take("}");
    }
    if (!proper) {
      at_ = start;
      return false;
    }
    if (min > max) return wrong(text("the counts {", min, ',', max, "} are in the wrong order"));
    return true;
  }

  static RegexNode set_node(CodePointSet set) {
    RegexNode node;
    node.kind = RegexNode::Kind::set;
    node.set = std::move(set);
    return node;
  }

  Result<RegexNode> atom() {
    if (++atoms_ > kAtomsMax)
      return Status(Code::unsupported,
                    text("pattern, byte ", at_, ": more than ", kAtomsMax, " parts"),
                    {atoms_, -1, kAtomsMax});
    RegexNode node;
    switch (pattern_[at_]) {
      case '^':
        ++at_;
        node.kind = RegexNode::Kind::text_start;
        return node;
      case '$':
        ++at_;
        node.kind = RegexNode::Kind::text_end;
        return node;
      case '.':
        ++at_;
        return set_node(CodePointSet::of('\n').complement());
      case '(':
        return group();
      case '[': {
        OPTIMA_ASSIGN(CodePointSet set, bracket());
        return set_node(std::move(set));
      }
      case '*':
      case '+':
      case '?':
        return wrong("a quantifier without anything before it");
      case '{': {
        int64_t min = 0, max = 0;
        OPTIMA_ASSIGN(const bool is_count, count(min, max));
        if (is_count) return wrong("a quantifier without anything before it");
        break;
      }
      case '\\': {
        OPTIMA_ASSIGN(Escape escape, escaped(false));
        return set_node(std::move(escape.set));
      }
      default:
        break;
    }
    return set_node(CodePointSet::of(take_code_point()));
  }

  Result<RegexNode> group() {
    if (take("(?")) {
      if (take(":")) {
      } else if (next_is("<=") || next_is("<!") || next_is("=") || next_is("!")) {
        return refused("lookaround");
      } else if (take("P<") || take("<")) {
        const size_t end = pattern_.find('>', at_);
        if (end == std::string_view::npos) return wrong("a group name without '>'");
        at_ = end + 1;
      } else {
        return refused("a group with flags");
      }
    } else {
      ++at_;
    }
    if (++nesting_ > nesting_max_)
      return Status(Code::unsupported,
                    text("pattern, byte ", at_, ": groups nest more than ", nesting_max_, " deep"),
                    {nesting_, -1, nesting_max_});
    OPTIMA_ASSIGN(RegexNode node, choice());
    if (!take(")")) return wrong("'(' without ')'");
    --nesting_;
    return node;
  }

  struct Escape {
    CodePointSet set;
    bool single = false;  // one code point, which may start or end a range
    uint32_t point = 0;
  };

  Result<uint32_t> hex(size_t digit_count) {
    uint32_t value = 0;
    for (size_t i = 0; i < digit_count; ++i, ++at_) {
      const char c = done() ? '\0' : pattern_[at_];
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<uint32_t>(c - '0');
      else if ((c | 32) >= 'a' && (c | 32) <= 'f')
        value = value * 16 + static_cast<uint32_t>((c | 32) - 'a' + 10);
      else
        return wrong(text("an escape needs ", digit_count, " hexadecimal digits"));
    }
    return value;
  }

  Result<uint32_t> unicode_escape() {
    if (take("{")) {
      const size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos || end == at_ || end - at_ > 6)
        return wrong("\\u{...} needs 1 to 6 hexadecimal digits");
      OPTIMA_ASSIGN(const uint32_t value, hex(end - at_));
      ++at_;
      return value;
    }
    OPTIMA_ASSIGN(const uint32_t first, hex(4));
    if (first < 0xD800 || first > 0xDBFF || !take("\\u")) return first;
    OPTIMA_ASSIGN(const uint32_t second, hex(4));
    if (second < 0xDC00 || second > 0xDFFF) return wrong("half a surrogate pair");
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  Result<Escape> escaped(bool in_brackets) {
    ++at_;
    if (done()) return wrong("a backslash at the end");
    const size_t start = at_;
    const uint32_t c = take_code_point();
    const auto single = [](uint32_t point) { return Escape{CodePointSet::of(point), true, point}; };
    switch (c) {
      case 'd':
        return Escape{digits()};
      case 'D':
        return Escape{digits().complement()};
      case 'w':
        return Escape{word_characters()};
      case 'W':
        return Escape{word_characters().complement()};
      case 's':
        return Escape{spaces()};
      case 'S':
        return Escape{spaces().complement()};
      case 't':
        return single('\t');
      case 'n':
        return single('\n');
      case 'r':
        return single('\r');
      case 'f':
        return single('\f');
      case 'v':
        return single('\v');
      case '0':
        if (done() || pattern_[at_] < '0' || pattern_[at_] > '9') return single(0);
        break;
      case 'x': {
        OPTIMA_ASSIGN(const uint32_t point, hex(2));
        return single(point);
      }
      case 'u': {
        OPTIMA_ASSIGN(const uint32_t point, unicode_escape());
        if (point > kCodePointMax || (point >= 0xD800 && point <= 0xDFFF))
          return wrong("an escape that is no code point");
        return single(point);
      }
      case 'b':
        if (in_brackets) return single('\b');
        at_ = start;
        return refused("a word boundary");
      default:
        break;
    }
    if (!is_letter_or_digit(c)) return single(c);
    at_ = start;
    if (c >= '0' && c <= '9') return refused("a backreference or octal escape");
    return refused(text("the escape \\", static_cast<char>(c)));
  }

  Result<Escape> bracket_item() {
    if (next_is("\\")) return escaped(true);
    const uint32_t point = take_code_point();
    return Escape{CodePointSet::of(point), true, point};
  }

  Result<CodePointSet> bracket() {
    const size_t start = at_;
    ++at_;
    const bool negated = take("^");
    if (next_is("]")) return refused("an empty class, or one that starts with ']'");
    CodePointSet set;
    std::vector<CodePointRange> ranges;
    while (!done() && !next_is("]")) {
      OPTIMA_ASSIGN(Escape first, bracket_item());
      const bool is_range = next_is("-") && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
      if (!is_range) {
        if (first.single)
          ranges.push_back({first.point, first.point});
        else
          set = set.united(first.set);
        continue;
      }
      ++at_;
      OPTIMA_ASSIGN(const Escape last, bracket_item());
      if (!first.single || !last.single) return wrong("a range that ends at a class");
      if (first.point > last.point) return wrong("a range in the wrong order");
      ranges.push_back({first.point, last.point});
    }
    if (!take("]")) {
      at_ = start;
      return wrong("'[' without ']'");
    }
    set = set.united(CodePointSet(std::move(ranges)));
    if (negated) set = set.complement();
    return set;
  }

  const std::string_view pattern_;
  const int64_t nesting_max_;
  size_t at_ = 0;
  int64_t nesting_ = 0, atoms_ = 0;
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern, int64_t nesting_max) {
  return Parser(pattern, nesting_max).all();
}

}  // namespace optima::sampling::grammar
