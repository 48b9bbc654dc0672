// The decoder follows table 3-7 of the Unicode standard: after the lead byte only the second byte
// has a range of its own, which is where overlong forms, surrogates and too large values show.
#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

struct Lead {
  uint8_t bytes;  // 0 = no lead byte
  uint8_t second_min, second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte_at(at);
  const Lead lead = lead_of(first);
  if (lead.bytes == 1) return {Utf8State::valid, 1, first};
  if (lead.bytes == 0) return {Utf8State::invalid, 1, 0};
  char32_t value = first & (0xFFu >> (lead.bytes + 1));
  for (uint8_t i = 1; i < lead.bytes; ++i) {
    if (at + i == text.size()) return {Utf8State::incomplete, i, 0};
    const uint8_t byte = byte_at(at + i);
    const uint8_t min = i == 1 ? lead.second_min : 0x80, max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8State::invalid, i, 0};
    value = (value << 6) | (byte & 0x3F);
  }
  return {Utf8State::valid, lead.bytes, value};
}

void append_utf8(char32_t value, std::string& out) {
  const auto push = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    push(value);
  } else if (value < 0x800) {
    push(0xC0 | (value >> 6));
    push(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    push(0xE0 | (value >> 12));
    push(0x80 | ((value >> 6) & 0x3F));
    push(0x80 | (value & 0x3F));
  } else {
    push(0xF0 | (value >> 18));
    push(0x80 | ((value >> 12) & 0x3F));
    push(0x80 | ((value >> 6) & 0x3F));
    push(0x80 | (value & 0x3F));
  }
}

}  // namespace optima::tokenizer
