// {"String": "..."} or {"Regex": "..."}: what Split and Replace look for.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/regex.h"

namespace optima::tokenizer::hf {

class Pattern {
 public:
  static Result<std::unique_ptr<Pattern>> create(const Component& component);  // its "pattern"
  static Result<std::unique_ptr<Pattern>> of_regex(std::string_view regex,
                                                   Dialect dialect = Dialect::oniguruma);
  static Result<std::unique_ptr<Pattern>> of_literal(std::string_view literal);

  // See Regex::find_all().
  Status find_all(std::string_view piece, TimeBudget& budget, std::vector<Range>& matches) const;
  // Null for a regular expression.
  const std::string* literal() const { return regex_ == nullptr ? &literal_ : nullptr; }

 private:
  std::string literal_;
  std::unique_ptr<Regex> regex_;
};

}  // namespace optima::tokenizer::hf
