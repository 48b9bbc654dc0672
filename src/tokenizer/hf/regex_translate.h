// Patterns of tokenizer.json files are written for Oniguruma (Ruby's syntax); we run PCRE2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace optima::tokenizer::hf {

enum class Dialect : uint8_t {
  oniguruma,  // tokenizer.json
  rust,       // tiktoken: x{1,3}+ is possessive, $ is the end of the text
};

// The same pattern in PCRE2's syntax, for PCRE2_UTF | PCRE2_UCP (and PCRE2_MULTILINE for
// Oniguruma). What the two
// engines understand differently and no rewriting helps is an `unsupported` error that names it.
Result<std::string> translate_pattern(std::string_view pattern, Dialect dialect);

}  // namespace optima::tokenizer::hf
