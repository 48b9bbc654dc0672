// Characters that Unicode gained after version 14, by the classes that pre-tokenisers tell apart.
#pragma once

#include <cstdint>
#include <span>

namespace optima::tokenizer {

enum class CharacterClass : uint8_t {
  upper,  // title case too: no pattern tells them apart
  lower,
  modifier,
  other_letter,
  mark,
  number,
  punctuation,
};

struct UnicodeAddition {
  char32_t first, last;
  CharacterClass character_class;
};

// Sorted, not overlapping, all of three or four bytes in UTF-8.
std::span<const UnicodeAddition> unicode_additions();

}  // namespace optima::tokenizer
