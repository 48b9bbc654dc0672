// Characters that Unicode gained, or classed anew, after version 14.
#pragma once

#include <cstdint>
#include <span>

namespace optima::tokenizer {

// The general categories that grew.
enum class CharacterClass : uint8_t {
  upper,
  lower,
  modifier,
  other_letter,
  nonspacing_mark,
  spacing_mark,
  decimal,
  other_number,
  dash,
  other_punctuation,
  mathematical,
  other_symbol,
  format,
};

struct UnicodeAddition {
  char32_t first, last;
  CharacterClass character_class;
};

// Sorted, not overlapping, all of three or four bytes in UTF-8.
std::span<const UnicodeAddition> unicode_additions();

}  // namespace optima::tokenizer
