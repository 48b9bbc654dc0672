// Both directions of the alphabet as tables; a character takes one or two bytes of UTF-8.
#include "tokenizer/byte_alphabet.h"

#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

ByteAlphabet::ByteAlphabet() {
  byte_of_.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t value = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    byte_of_[value] = static_cast<int16_t>(byte);
    std::string utf8;
    append_utf8(value, utf8);
    character_bytes_[static_cast<size_t>(byte)] = static_cast<uint8_t>(utf8.size());
    utf8.copy(characters_[static_cast<size_t>(byte)].data(), utf8.size());
  }
}

void ByteAlphabet::append_characters(std::string_view bytes, std::string& out) const {
  for (const char byte : bytes) out.append(character(static_cast<uint8_t>(byte)));
}

void ByteAlphabet::append_bytes(std::string_view characters, std::string& out) const {
  for (size_t at = 0; at < characters.size();) {
    const Utf8Step step = utf8_step(characters, at);
    const bool known = step.state == Utf8State::valid && step.value < kEnd;
    if (known && byte_of_[step.value] >= 0) {
      out.push_back(static_cast<char>(byte_of_[step.value]));
    } else {
      out.append(characters.substr(at, step.bytes));
    }
    at += step.bytes;
  }
}

}  // namespace optima::tokenizer
