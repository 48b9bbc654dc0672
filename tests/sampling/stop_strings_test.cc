// Stop strings in streamed text against a naive search in the whole text, over all ways to cut it.
#include "sampling/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace optima::sampling {
namespace {

struct Outcome {
  std::string text;
  int matched = -1;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << "\" stop " << outcome.matched;
}

// The first end at which any stop string is complete, the longest of those that end there.
Outcome naive(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    Outcome best;
    for (size_t i = 0; i < stops.size(); ++i) {
      const size_t size = stops[i].size();
      if (size == 0 || size > end || text.compare(end - size, size, stops[i]) != 0) continue;
      if (best.matched >= 0 && size <= stops[static_cast<size_t>(best.matched)].size()) continue;
      best = {text.substr(0, end - size), static_cast<int>(i)};
    }
    if (best.matched >= 0) return best;
  }
  return {text, -1};
}

Outcome stream(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopStrings stop_strings(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    const StopStrings::Result result = stop_strings.push(piece);
    outcome.text += result.text;
    outcome.matched = result.matched;
    if (result.matched >= 0) return outcome;
  }
  outcome.text += stop_strings.finish();
  return outcome;
}

// Cuts `text` after each byte whose bit is set.
std::vector<std::string> cut(const std::string& text, unsigned bits) {
  std::vector<std::string> pieces(1);
  for (size_t i = 0; i < text.size(); ++i) {
    pieces.back().push_back(text[i]);
    if (bits >> i & 1) pieces.emplace_back();
  }
  return pieces;
}

TEST(StopStrings, AnyCutGivesWhatANaiveSearchFinds) {
  const std::vector<std::vector<std::string>> lists = {
      {"ab"},        {"aab"},     {"abab", "ba"},   {"abcd", "bc"},
      {"bc", "abc"}, {"a", "aa"}, {"abaab", "aba"}, {"", "cc"},
      {"b", "b"},    {"aaaa"},    {"ca", "bcab"},   {},
      {""},          {"abcabc"},  {"cab", "abca"},
  };
  for (const auto& stops : lists) {
    for (const std::string text :
         {"aabaabcab", "abcabcabc", "aaaaaaab", "cbacbabca", "bbbb", "", "c"}) {
      const Outcome expected = naive(stops, text);
      for (unsigned bits = 0; bits < 1u << text.size(); ++bits)
        ASSERT_EQ(stream(stops, cut(text, bits)), expected) << text << " cut by " << bits;
    }
  }
}

TEST(StopStrings, RandomTexts) {
  std::mt19937 random(2);
  const auto word = [&](size_t longest) {
    std::string text(random() % (longest + 1), 'a');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i < random() % 4; ++i) stops.push_back(word(6));
    const std::string text = word(24);
    ASSERT_EQ(stream(stops, cut(text, static_cast<unsigned>(random()))), naive(stops, text))
        << text;
  }
}

TEST(StopStrings, HoldsBackNoMoreThanItMust) {
  StopStrings stop_strings({"\n\nUser:"});
  EXPECT_EQ(stop_strings.push("Hello").text, "Hello");
  EXPECT_EQ(stop_strings.push(" there\n").text, " there");
  EXPECT_EQ(stop_strings.push("\n").text, "");
  EXPECT_EQ(stop_strings.push("\n").text, "\n");  // two line feeds may still begin it
  EXPECT_EQ(stop_strings.push("Us").text, "");
  EXPECT_EQ(stop_strings.push("age").text, "\n\nUsage");
  EXPECT_EQ(stop_strings.push(" \n\nUser").text, " ");
  const StopStrings::Result result = stop_strings.push(": hi");
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.matched, 0);
  EXPECT_EQ(stop_strings.finish(), "");
}

TEST(StopStrings, GivesBackWholeCodePoints) {
  StopStrings stop_strings({"\xE2\x82\xAC!", "\xC3\xA9t\xC3\xA9"});  // euro sign and "!"; "ete"
  EXPECT_EQ(stop_strings.push("10 \xE2\x82\xAC").text, "10 ");
  EXPECT_EQ(stop_strings.push("\xE2\x82\xA4").text,
            "\xE2\x82\xAC\xE2\x82\xA4");  // first bytes shared
  EXPECT_EQ(stop_strings.push("\xC3\xA9t").text, "");
  EXPECT_EQ(stop_strings.push("\xC3\xA8").text, "\xC3\xA9t\xC3\xA8");
  EXPECT_EQ(stop_strings.push("\xC3\xA9t").text, "");
  EXPECT_EQ(stop_strings.push("\xC3\xA9").matched, 1);
}

TEST(StopStrings, FinishShowsWhatWasHeld) {
  StopStrings stop_strings({"END"});
  EXPECT_EQ(stop_strings.push("the EN").text, "the ");
  EXPECT_EQ(stop_strings.finish(), "EN");
  EXPECT_EQ(stop_strings.push("D").text, "D");  // nothing of before is remembered
}

}  // namespace
}  // namespace optima::sampling
