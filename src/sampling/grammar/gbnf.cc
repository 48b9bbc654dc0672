// Recursive descent that builds the network as it reads: every element gets a start and an end
// state of its own, which its quantifier then joins. Rules are parts that are called; one that is
// used before it is defined has its start state already.
#include "sampling/grammar/gbnf.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/utf8.h"
#include "sampling/grammar/text_automaton.h"

namespace optima::sampling::grammar {
namespace {

constexpr int64_t kCountMax = 1'000'000'000'000;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, Builder& builder)
      : text_(text), builder_(builder), writer_(builder, TextEncoding::utf8) {}

  Result<StateId> all() {
    const size_t valid = utf8_valid_prefix(text_);
    if (valid != text_.size()) {
      at_ = valid;
      return wrong("bytes that are no UTF-8");
    }
    skip_space(true);
    while (at_ < text_.size()) {
      OPTIMA_TRY(rule());
      skip_space(true);
    }
    for (const auto& [name, known] : rules_) {
      if (known.defined) continue;
      at_ = known.first_use;
      return wrong(text("the rule '", name, "' is not defined"));
    }
    const auto root = rules_.find("root");
    if (root == rules_.end())
      return Status(Code::invalid_argument, "grammar: there is no rule 'root'");
    return root->second.start;
  }

 private:
  struct Rule {
    StateId start;
    size_t first_use;
    bool defined;
  };
  struct Part {
    StateId start, end;
  };

  Status fail(Code code, std::string_view what) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n');  // npos + 1 == 0
    return {code,
            text("grammar, line ", line, ", column ", at_ - (line_start + 1) + 1, ": ", what)};
  }
  Status wrong(std::string_view what) const { return fail(Code::invalid_argument, what); }

  bool next_is(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!next_is(s)) return false;
    at_ += s.size();
    return true;
  }

  void skip_space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view take_name() {
    const size_t start = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Rule& rule_of(std::string_view name) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second;
    const StateId start = builder_.state();
    builder_.name(start, text("the rule '", name, "'"));
    return rules_.emplace(std::string(name), Rule{start, at_, false}).first->second;
  }

  Status check_states() const {
    if (!builder_.full()) return {};
    const int64_t limit = builder_.limits().states;
    return {
        Code::unsupported, text("the grammar needs more than ", limit, " states"), {-1, -1, limit}};
  }

  Status rule() {
    const std::string_view name = take_name();
    if (name.empty()) return wrong("a rule starts with its name");
    skip_space(false);
    if (!take("::=")) return wrong(text("'::=' is missing after '", name, "'"));
    Rule& rule = rule_of(name);
    if (rule.defined) return wrong(text("the rule '", name, "' is defined twice"));
    rule.defined = true;
    skip_space(true);
    OPTIMA_TRY(alternatives(rule.start, builder_.final_state(), 0));
    skip_space(false);
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r')
      return wrong("a rule ends with its line");
    return {};
  }

  Status alternatives(StateId from, StateId to, int64_t nesting) {
    do {
      skip_space(true);
      OPTIMA_TRY(sequence(from, to, nesting));
    } while (take("|"));
    return {};
  }

  Status sequence(StateId from, StateId to, int64_t nesting) {
    const StateId first = builder_.state();
    builder_.skip(from, first);
    StateId now = first;
    while (true) {
      skip_space(nesting > 0);
      if (at_ >= text_.size() || next_is("|") || next_is(")") || next_is("\n") || next_is("\r"))
        break;
      OPTIMA_TRY(check_states());
      const Part part{builder_.state(), builder_.state()};
      OPTIMA_TRY(element(part, nesting));
      OPTIMA_ASSIGN(now, quantified(part, now, nesting));
    }
    builder_.skip(now, to);
    return {};
  }

  Status element(const Part& part, int64_t nesting) {
    const char c = text_[at_];
    if (c == '"') return literal(part);
    if (c == '[') return bracket(part);
    if (c == '.') {
      ++at_;
      writer_.set(part.start, CodePointSet::all(), part.end);
      return {};
    }
    if (c == '(') {
      if (nesting >= builder_.limits().nesting)
        return Status(Code::unsupported,
                      text("groups nest more than ", builder_.limits().nesting, " deep"),
                      {nesting + 1, -1, builder_.limits().nesting});
      ++at_;
      OPTIMA_TRY(alternatives(part.start, part.end, nesting + 1));
      skip_space(true);
      return take(")") ? Status() : wrong("')' is missing");
    }
    if (c == '<') return fail(Code::unsupported, "a token named by <...> is not supported");
    const size_t start = at_;
    const std::string_view name = take_name();
    if (name.empty()) return wrong("text, a class, a name or a group is expected");
    at_ = start;
    const StateId called = rule_of(name).start;
    at_ += name.size();
    builder_.call(part.start, called, part.end);
    return {};
  }

  Result<StateId> quantified(const Part& part, StateId from, int64_t nesting) {
    skip_space(nesting > 0);
    if (take("*")) {
      const StateId loop = builder_.state();
      builder_.skip(from, loop);
      builder_.skip(loop, part.start);
      builder_.skip(part.end, loop);
      return loop;
    }
    if (take("{")) return counted(part, from);
    builder_.skip(from, part.start);
    if (take("+")) {
      const StateId loop = builder_.state();
      builder_.skip(part.end, loop);
      builder_.skip(loop, part.start);
      return loop;
    }
    if (take("?")) builder_.skip(from, part.end);
    return part.end;
  }

  Result<int64_t> number() {
    const size_t start = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      value = std::min(value * 10 + (text_[at_] - '0'), kCountMax);
    if (at_ == start) return wrong("a number is expected");
    return value;
  }

  Result<StateId> counted(const Part& part, StateId from) {
    skip_space(true);
    int64_t min = 0;
    if (!next_is(",")) {
      OPTIMA_ASSIGN(min, number());
    }
    int64_t max = min;
    skip_space(true);
    if (take(",")) {
      skip_space(true);
      max = kUnlimited;
      if (!next_is("}")) {
        OPTIMA_ASSIGN(max, number());
      }
      skip_space(true);
    }
    if (!take("}")) return wrong("'}' is missing");
    if (min > max) return wrong(text("the counts {", min, ',', max, "} are in the wrong order"));
    builder_.set_final(part.end);
    const StateId next = builder_.state();
    builder_.repeat(from, {part.start, next, min, max});
    return next;
  }

  // One character of a literal or a class, escapes resolved.
  Result<uint32_t> character() {
    const CodePoint point = decode_utf8(text_, at_);
    if (point.value != '\\') {
      at_ += point.byte_count;
      return point.value;
    }
    ++at_;
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 't':
        return uint32_t{'\t'};
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<uint32_t>(c);
      default:
        return wrong("an unknown escape");
    }
  }

  Result<uint32_t> hex(int digit_count) {
    uint64_t value = 0;
    for (int i = 0; i < digit_count; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<uint64_t>(c - '0');
      else if ((c | 32) >= 'a' && (c | 32) <= 'f')
        value = value * 16 + static_cast<uint64_t>((c | 32) - 'a' + 10);
      else
        return wrong(text("an escape needs ", digit_count, " hexadecimal digits"));
    }
    if (value > kCodePointMax || (value >= 0xD800 && value <= 0xDFFF))
      return wrong("an escape that is no code point");
    return static_cast<uint32_t>(value);
  }

  Status literal(const Part& part) {
    ++at_;
    StateId from = part.start;
    while (at_ < text_.size() && text_[at_] != '"') {
      OPTIMA_ASSIGN(const uint32_t point, character());
      OPTIMA_TRY(check_states());
      const StateId next = builder_.state();
      writer_.set(from, CodePointSet::of(point), next);
      from = next;
    }
    if (!take("\"")) return wrong("'\"' is missing at the end of a text");
    builder_.skip(from, part.end);
    return {};
  }

  Status bracket(const Part& part) {
    ++at_;
    const bool negated = take("^");
    std::vector<CodePointRange> ranges;
    while (at_ < text_.size() && text_[at_] != ']') {
      OPTIMA_ASSIGN(const uint32_t low, character());
      uint32_t high = low;
      if (next_is("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        OPTIMA_ASSIGN(high, character());
      }
      if (low > high) return wrong("a range in the wrong order");
      ranges.push_back({low, high});
    }
    if (!take("]")) return wrong("']' is missing");
    const CodePointSet set(std::move(ranges));
    writer_.set(part.start, negated ? set.complement() : set, part.end);
    return {};
  }

  const std::string_view text_;
  Builder& builder_;
  TextWriter writer_;
  std::map<std::string, Rule, std::less<>> rules_;
  size_t at_ = 0;
};

}  // namespace

Result<StateId> compile_gbnf(std::string_view text, Builder& builder) {
  return Parser(text, builder).all();
}

}  // namespace optima::sampling::grammar
