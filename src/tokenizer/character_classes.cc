// PCRE2 10.42 knows Unicode 14; the tokenizers that the models are published for know Unicode 16.
// The table (unicode_additions.cc) has what came in between.
#include "tokenizer/character_classes.h"

#include <algorithm>
#include <array>
#include <span>

#include "tokenizer/unicode_additions.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

constexpr char kInvalidByteStandIn = '\x01';

struct StandIns {
  char32_t three_bytes, four_bytes;
};
// Indexed by CharacterClass. Each pair is of that class since before Unicode 14. Patterns that list
// code points (DeepSeek's) take the new characters of three bytes for CJK and no other: so do they
// these.
constexpr std::array<StandIns, 13> kStandIns = {{
    {0x10C7, 0x16E40},  // upper: Georgian yn, Medefaidrin M
    {0x10FD, 0x16E60},  // lower: Georgian aen, Medefaidrin m
    {0x1D2C, 0x16B40},  // modifier: capital A, Pahawh Hmong vos seev
    {0x0915, 0x10000},  // other letter: Devanagari ka, Linear B a
    {0x093C, 0x16AF0},  // nonspacing mark: Devanagari nukta, Bassa Vah high tone
    {0x0903, 0x11000},  // spacing mark: Devanagari visarga, Brahmi candrabindu
    {0x0966, 0x104A0},  // decimal: Devanagari zero, Osmanya zero
    {0x2153, 0x10107},  // other number: one third, Aegean one
    {0x2010, 0x10EAD},  // dash: hyphen, Yezidi hyphenation mark
    {0x2020, 0x10100},  // other punctuation: dagger, Aegean word separator
    {0x2200, 0x1D6C1},  // mathematical: for all, bold nabla
    {0x2600, 0x1F300},  // other symbol: sun, cyclone
    {0x200B, 0x110BD},  // format: zero width space, Kaithi number sign
}};
constexpr char32_t kMongolianVowelSeparator =
    0x180E;  // a space to PCRE2, a format character since 6.3
constexpr char32_t kFormatStandIn = 0x200B;
constexpr char32_t kNewLatin = 0xA7CB, kLatinUpperStandIn = 0xA7C9, kLatinLowerStandIn = 0xA7CA;
constexpr char32_t kNewIdeographs = 0x2B739, kIdeographStandIn = 0x20000;

char32_t stand_in(char32_t value, uint8_t bytes) {
  if (value == kMongolianVowelSeparator) return kFormatStandIn;
  const std::span<const UnicodeAddition> table = unicode_additions();
  if (value < table.front().first) return value;
  const auto row = std::upper_bound(
      table.begin(), table.end(), value,
      [](char32_t wanted, const UnicodeAddition& addition) { return wanted < addition.first; });
  const UnicodeAddition& addition = *(row - 1);
  if (value > addition.last) return value;
  // Patterns name this script (\p{Han}); what is new in these planes is ideographs.
  if (value >= kNewIdeographs) return kIdeographStandIn;
  // Patterns with ranges of code points take these to be where the new letters are.
  if (bytes == 3 && value >= kNewLatin) {
    if (addition.character_class == CharacterClass::upper) return kLatinUpperStandIn;
    if (addition.character_class == CharacterClass::lower) return kLatinLowerStandIn;
  }
  const StandIns& pair = kStandIns[static_cast<size_t>(addition.character_class)];
  return bytes == 3 ? pair.three_bytes : pair.four_bytes;
}

void write_utf8(char32_t value, char* into) {
  std::string utf8;
  append_utf8(value, utf8);
  utf8.copy(into, utf8.size());
}

}  // namespace

std::optional<std::string> pattern_subject(std::string_view text) {
  std::optional<std::string> subject;
  const auto changed = [&]() -> char* {
    if (!subject) subject.emplace(text);
    return subject->data();
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.state != Utf8State::valid) {
      std::fill_n(changed() + at, step.bytes, kInvalidByteStandIn);
    } else if (step.bytes >= 3) {
      const char32_t other = stand_in(step.value, step.bytes);
      if (other != step.value) write_utf8(other, changed() + at);
    }
    at += step.bytes;
  }
  return subject;
}

}  // namespace optima::tokenizer
