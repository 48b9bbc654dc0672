// Patterns of tokenizer.json files are written for Oniguruma (Ruby's syntax); we run PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace optima::tokenizer::hf {

// The same pattern in PCRE2's syntax, for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE. What the two
// engines understand differently and no rewriting helps is an `unsupported` error that names it.
Result<std::string> translate_pattern(std::string_view oniguruma);

}  // namespace optima::tokenizer::hf
