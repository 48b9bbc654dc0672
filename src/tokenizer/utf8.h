// UTF-8 over any bytes: one step of a decoder that never fails, and an encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace optima::tokenizer {

enum class Utf8State : uint8_t {
  valid,       // a whole code point
  invalid,     // a maximal prefix of a code point that cannot go on (what U+FFFD stands for)
  incomplete,  // the text ends inside a code point
};

struct Utf8Step {
  Utf8State state;
  uint8_t bytes;   // at least 1
  char32_t value;  // meaningful when valid
};

// Decodes at text[at]; `at` must be inside the text. Surrogates, overlong forms and values above
// U+10FFFF are invalid.
Utf8Step utf8_step(std::string_view text, size_t at);

void append_utf8(char32_t value, std::string& out);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace optima::tokenizer
