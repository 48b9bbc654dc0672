// UTF-8: decoding one code point at a time, appending one, and finding the first bad byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace optima {

struct CodePoint {
  uint32_t value = 0;
  uint32_t byte_count = 0;  // 0 = no well-formed code point starts here
};

// The code point whose first byte is text[at]. Overlong forms, surrogates and values beyond
// U+10FFFF are not well-formed. Requires at < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);

// Appends a code point; a surrogate or a value beyond U+10FFFF is the caller's mistake and is
// written as U+FFFD.
void append_utf8(std::string& out, uint32_t code_point);

// How many bytes from the start are well-formed: text.size() when all are.
size_t utf8_valid_prefix(std::string_view text);

// The number of code points of well-formed text.
int64_t utf8_length(std::string_view text);

}  // namespace optima
