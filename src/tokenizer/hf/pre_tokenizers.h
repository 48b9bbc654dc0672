// The pre-tokenisers of tokenizer.json.
#pragma once

#include <memory>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/pieces.h"

namespace optima::tokenizer::hf {

// Immutable after creation; safe to use from any thread.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual Status apply(Pieces& pieces) const = 0;

  // Fails with `unsupported` naming a type or option that is not known.
  static Result<std::unique_ptr<PreTokenizer>> create(const Component& component, int nesting = 0);
};

// Matches of the pattern, and what lies between them, are pieces.
Result<std::unique_ptr<PreTokenizer>> split_isolated(std::string_view regex, Dialect dialect);

}  // namespace optima::tokenizer::hf
