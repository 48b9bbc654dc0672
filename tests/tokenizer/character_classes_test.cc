// Which code points a pattern's classes match: as the regular expressions of two tokenizer packages
// have it (tests/goldens/make_character_classes.py). PCRE2's tables are older.
#include "tokenizer/character_classes.h"

#include <gtest/gtest.h>

#include <charconv>
#include <sstream>

#include "tests/tokenizer/vocabulary_file.h"
#include "tokenizer/hf/regex.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

using Members = std::vector<uint8_t>;  // by code point

constexpr char32_t kPlanesEnd = 0x40000, kTags = 0xE0000, kTagsEnd = 0xE0200;

std::vector<char32_t> code_points() {
  std::vector<char32_t> all;
  for (char32_t value = 0; value < kPlanesEnd; ++value) {
    if (value < 0xD800 || value > 0xDFFF) all.push_back(value);
  }
  for (char32_t value = kTags; value < kTagsEnd; ++value) all.push_back(value);
  return all;
}

Members read_ranges(const std::string& list) {
  Members members(kTagsEnd);
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    const size_t dash = std::min(word.find('-'), word.size());
    char32_t first = 0;
    uint32_t number = 0;
    std::from_chars(word.data(), word.data() + dash, number, 16);
    first = number;
    if (dash < word.size()) {
      std::from_chars(word.data() + dash + 1, word.data() + word.size(), number, 16);
    }
    for (char32_t value = first; value <= number; ++value) members[value] = 1;
  }
  return members;
}

Members matched(const std::string& pattern, hf::Dialect dialect) {
  Members members(kTagsEnd);
  std::string text;
  std::vector<std::pair<size_t, char32_t>> places;
  for (const char32_t value : code_points()) {
    places.emplace_back(text.size(), value);
    append_utf8(value, text);
  }
  const std::string subject = pattern_subject(text).value_or(text);
  auto regex = hf::Regex::create(pattern, dialect);
  EXPECT_TRUE(regex) << regex.status().message();
  if (!regex) return members;
  hf::TimeBudget budget(text.size());
  std::vector<hf::Range> matches;
  const Status found = (*regex)->find_all(subject, budget, matches);
  EXPECT_TRUE(found.ok()) << found.message();
  size_t place = 0;
  for (const hf::Range& match : matches) {
    while (place < places.size() && places[place].first < match.begin) ++place;
    for (; place < places.size() && places[place].first < match.end; ++place) {
      members[places[place].second] = 1;
    }
  }
  return members;
}

TEST(CharacterClasses, AreThoseOfTheTokenizerPackages) {
  const auto file = read_file(OPTIMA_SOURCE_DIR "/tests/goldens/tokenizer/character_classes.txt");
  ASSERT_TRUE(file);
  std::istringstream lines(*file);
  int classes = 0;
  std::string dialect, pattern, ranges;
  while (std::getline(lines, dialect, '\t') && std::getline(lines, pattern, '\t') &&
         std::getline(lines, ranges)) {
    ++classes;
    const Members wanted = read_ranges(ranges);
    for (const hf::Dialect asked : {hf::Dialect::oniguruma, hf::Dialect::rust}) {
      const std::string_view name = asked == hf::Dialect::rust ? "rust" : "oniguruma";
      if (dialect != "both" && dialect != name) continue;
      const Members have = matched(pattern, asked);
      int shown = 0;
      for (const char32_t value : code_points()) {
        if (have[value] == wanted[value] || ++shown > 3) continue;
        ADD_FAILURE() << name << ' ' << pattern << ": U+" << std::hex
                      << static_cast<uint32_t>(value) << " matches " << int{have[value]}
                      << ", wanted " << int{wanted[value]};
      }
    }
  }
  EXPECT_GE(classes, 35);
}

}  // namespace
}  // namespace optima::tokenizer
