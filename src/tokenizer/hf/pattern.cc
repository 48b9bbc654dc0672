// Literal patterns are nearly all of them (" ", "\xE2\x96\x81"), and a search is faster than a
// match.
#include "tokenizer/hf/pattern.h"

#include "base/text.h"

namespace optima::tokenizer::hf {

Result<std::unique_ptr<Pattern>> Pattern::create(const Component& component) {
  OPTIMA_ASSIGN(const Component pattern, component.object("pattern"));
  auto made = std::make_unique<Pattern>();
  if (pattern.find("Regex") != nullptr) {
    OPTIMA_ASSIGN(const std::string_view regex, pattern.string("Regex"));
    Result<std::unique_ptr<Pattern>> compiled = of_regex(regex);
    if (!compiled.ok()) return compiled.take_status().in("tokenizer.json: " + pattern.place());
    return compiled;
  }
  OPTIMA_ASSIGN(const std::string_view literal, pattern.string("String"));
  if (literal.empty()) return pattern.unsupported("the empty pattern", literal);
  return of_literal(literal);
}

Result<std::unique_ptr<Pattern>> Pattern::of_regex(std::string_view regex, Dialect dialect) {
  auto made = std::make_unique<Pattern>();
  OPTIMA_ASSIGN(made->regex_, Regex::create(regex, dialect));
  return made;
}

Result<std::unique_ptr<Pattern>> Pattern::of_literal(std::string_view literal) {
  auto made = std::make_unique<Pattern>();
  made->literal_ = literal;
  return made;
}

Status Pattern::find_all(std::string_view piece, TimeBudget& budget,
                         std::vector<Range>& matches) const {
  if (regex_ != nullptr) return regex_->find_all(piece, budget, matches);
  for (size_t at = piece.find(literal_); at != std::string_view::npos;
       at = piece.find(literal_, at + literal_.size())) {
    matches.push_back({at, at + literal_.size()});
  }
  return {};
}

}  // namespace optima::tokenizer::hf
