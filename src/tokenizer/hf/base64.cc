// Four characters are three bytes; the last group may be padded.
#include "tokenizer/hf/base64.h"

#include <cstdint>

namespace optima::tokenizer::hf {
namespace {

int32_t value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int32_t value = i >= text.size() - padding ? 0 : value_of(text[i]);
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) out.push_back(static_cast<char>(group >> shift & 0xFF));
    group = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace optima::tokenizer::hf
