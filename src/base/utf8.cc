// UTF-8 as RFC 3629 defines it. The decoder looks at most four bytes ahead and never past the end,
// so it may be pointed at text of any origin.
#include "base/utf8.h"

namespace optima {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  uint32_t count = 0;
  uint32_t value = 0;
  uint32_t least = 0;  // the smallest value that needs so many bytes
  if ((first & 0xE0) == 0xC0) {
    count = 2, value = first & 0x1Fu, least = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    count = 3, value = first & 0x0Fu, least = 0x800;
  } else if ((first & 0xF8) == 0xF0) {
    count = 4, value = first & 0x07u, least = 0x10000;
  } else {
    return {};
  }
  if (text.size() - at < count) return {};
  for (uint32_t i = 1; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if (!is_continuation(byte)) return {};
    value = value << 6 | (byte & 0x3Fu);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < least || surrogate || value > 0x10FFFF) return {};
  return {value, count};
}

void append_utf8(std::string& out, uint32_t code_point) {
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (surrogate || code_point > 0x10FFFF) code_point = 0xFFFD;
  const auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | code_point >> 12));
    tail(6), tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | code_point >> 18));
    tail(12), tail(6), tail(0);
  }
}

size_t utf8_valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_utf8(text, at);
    if (point.byte_count == 0) return at;
    at += point.byte_count;
  }
  return at;
}

int64_t utf8_length(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += is_continuation(static_cast<unsigned char>(c)) ? 0 : 1;
  return count;
}

}  // namespace optima
