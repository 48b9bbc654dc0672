// GPT-2's byte alphabet: every byte has a printable character, so that byte-level vocabularies are
// ordinary text. Printable Latin-1 stands for itself; the other bytes take U+0100 and up in order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace optima::tokenizer {

class ByteAlphabet {
 public:
  ByteAlphabet();

  std::string_view character(uint8_t byte) const {
    return {characters_[byte].data(), character_bytes_[byte]};
  }
  void append_characters(std::string_view bytes, std::string& out) const;
  // Undoes append_characters(). Characters outside the alphabet stay as they are.
  void append_bytes(std::string_view characters, std::string& out) const;

 private:
  static constexpr char32_t kEnd = 0x144;  // one past the last character in use
  std::array<std::array<char, 2>, 256> characters_{};
  std::array<uint8_t, 256> character_bytes_{};
  std::array<int16_t, kEnd> byte_of_{};  // -1 = not in the alphabet
};

}  // namespace optima::tokenizer
