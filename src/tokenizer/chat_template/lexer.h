// Cuts a template into plain text and the tokens inside its tags, and applies the rules of white
// space: the newline after a block goes (trim_blocks), blanks before a block go (lstrip_blocks),
// '-' strips all white space on its side, '+' keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace optima::tokenizer::jinja {

enum class TokenKind : uint8_t {
  text,          // plain text between tags
  output_begin,  // {{
  output_end,
  block_begin,  // {%
  block_end,
  name,
  string,
  integer,
  real,
  symbol,  // an operator or a bracket, as written
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  uint32_t at = 0;
  std::string text;  // of a string: its meaning, escapes resolved
  int64_t integer = 0;
  double real = 0;
};

// Line ends become '\n', and one at the very end is dropped.
std::string normalise_source(std::string_view source);

// Requires well-formed UTF-8. The last token is of kind end.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace optima::tokenizer::jinja
