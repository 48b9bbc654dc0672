// The pieces themselves are proven by golden_test.cc; here: every byte is in one piece, and a host
// without executable memory gets the same pieces.
#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "tokenizer/character_classes.h"

namespace optima::tokenizer {
namespace {

const std::vector<std::string_view> kNames = {"default", "gpt-2",  "smollm", "llama-bpe",
                                              "qwen2",   "qwen35", "tekken", "gpt-4o"};

std::vector<std::string> texts() {
  std::vector<std::string> out = {
      "",
      "x",
      "Hello, it's 12345 \u00E9\u0301 \u4F60\u597D!\r\n\n  \tDON'T'\u017F",
      "\xFF\xC3 \x80",
      std::string(300'000, 'a'),
      std::string(300'000, ' '),
      std::string(300'000, 'A') + "!",
      "\n" + std::string(300'000, ' ') + "x"};
  std::mt19937 random(11);
  const std::string_view pool = " \n\rab'sAZ19.!/\xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80\xFF\t";
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) text.push_back(pool[random() % pool.size()]);
    out.push_back(text);
  }
  return out;
}

TEST(Pretokenizer, EnginesAgreeAndCoverTheText) {
  const std::vector<std::string> inputs = texts();
  for (const std::string_view name : kNames) {
    const PretokenizerFamily* family = find_pretokenizer_family(name);
    ASSERT_NE(family, nullptr) << name;
    auto compiled = Pretokenizer::create(*family, PatternEngine::compiled);
    auto interpreted = Pretokenizer::create(*family, PatternEngine::interpreted);
    ASSERT_TRUE(compiled);
    ASSERT_TRUE(interpreted);
    for (const std::string& text : inputs) {
      auto ends = (*compiled)->split(text);
      auto other_ends = (*interpreted)->split(text);
      ASSERT_TRUE(ends) << ends.status().message();
      ASSERT_TRUE(other_ends) << other_ends.status().message();
      ASSERT_EQ(*ends, *other_ends) << name;
      size_t before = 0;
      for (const size_t end : *ends) {
        ASSERT_GT(end, before);
        before = end;
      }
      ASSERT_EQ(before, text.size());
    }
  }
}

TEST(Pretokenizer, NamesAreListed) {
  const std::string names = pretokenizer_names();
  for (const std::string_view name : kNames) EXPECT_NE(names.find(name), std::string::npos);
  EXPECT_EQ(find_pretokenizer_family("gpt-99"), nullptr);
  // Names without goldens of their own stand for families that have them.
  EXPECT_EQ(find_pretokenizer_family("starcoder"), find_pretokenizer_family("smollm"));
  EXPECT_EQ(find_pretokenizer_family("refact"), find_pretokenizer_family("smollm"));
  EXPECT_EQ(find_pretokenizer_family("llama4"), find_pretokenizer_family("gpt-4o"));
  EXPECT_EQ(find_pretokenizer_family(""), find_pretokenizer_family("default"));
}

std::vector<size_t> ends_of(std::string_view family, std::string_view text) {
  auto made = Pretokenizer::create(*find_pretokenizer_family(family), PatternEngine::compiled);
  EXPECT_TRUE(made);
  auto ends = (*made)->split(text);
  EXPECT_TRUE(ends);
  return ends.take();
}

// Tables of several ages meet in the tokenizers library (0.23.3, which the ends are from).
TEST(Pretokenizer, StepsHaveTablesOfTheirOwn) {
  using Ends = std::vector<size_t>;
  // Punctuation of Unicode 14 is none to Falcon's step, punctuation of Unicode 7 is.
  EXPECT_EQ(ends_of("falcon", "\n\n\u2E55"), (Ends{1, 2, 5}));
  EXPECT_EQ(ends_of("falcon", "\n\n\u2E42"), (Ends{2, 5}));
  // A number of Unicode 17 is one to the step Digits, and none to a pattern.
  EXPECT_EQ(ends_of("smollm", "a\U00011DE0\U00011DE0"), (Ends{1, 5, 9}));
  EXPECT_EQ(ends_of("llama-bpe", "1\U00011DE0"), (Ends{1, 5}));
  EXPECT_EQ(ends_of("llama-bpe", "1\U00011F50"), (Ends{5}));
}

TEST(PatternSubject, KeepsTheLength) {
  EXPECT_FALSE(pattern_subject("plain \u00E9 \u4F60 \U0001F600"));
  EXPECT_EQ(pattern_subject("a\xFF\xE2\x82"), "a\x01\x01\x01");
  // A letter of Unicode 16, a number of Unicode 15, and the former space U+180E.
  EXPECT_EQ(pattern_subject("\u1C89\U00011F50\u180E"), "\u10C7\U000104A0\u200B");
}

}  // namespace
}  // namespace optima::tokenizer
