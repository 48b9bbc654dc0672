// Streams the text of a growing token sequence in whole UTF-8 code points: bytes of a code point
// that is still incomplete wait for the next token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

class Detokenizer {
 public:
  // `tokenizer` must outlive this. SpecialText says whether control tokens appear as text.
  Detokenizer(const Tokenizer& tokenizer, SpecialText special_text)
      : tokenizer_(&tokenizer), special_text_(special_text) {}

  struct Piece {
    std::string bytes;  // exactly this token's bytes
    std::string text;   // whole code points that became complete; invalid bytes become U+FFFD
  };
  Result<Piece> push(int32_t id);
  // What is left at the end: an incomplete code point becomes one U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  SpecialText special_text_;
  std::string pending_;
};

}  // namespace optima::tokenizer
