// Streaming equals decoding at once, whatever the tokens cut.
#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

// 256 byte tokens and one control token (256), so that every way to cut a text is a sequence.
std::unique_ptr<Tokenizer> byte_tokenizer() {
  std::vector<std::string> names;
  const std::string_view digits = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    names.push_back(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
  }
  names.push_back("<end_of_turn>");
  const std::vector<std::string_view> tokens(names.begin(), names.end());
  std::vector<int64_t> kinds(256, static_cast<int64_t>(TokenKind::byte));
  kinds.push_back(static_cast<int64_t>(TokenKind::control));
  const std::vector<double> scores(257, 0.0);
  auto made = Tokenizer::create({.model = "llama",
                                 .pre = "",
                                 .tokens = tokens,
                                 .scores = scores,
                                 .kinds = kinds,
                                 .merges = {},
                                 .add_space_prefix = 0});
  return made ? made.take() : nullptr;
}

TEST(Detokenizer, WaitsForWholeCodePoints) {
  const auto tokenizer = byte_tokenizer();
  ASSERT_TRUE(tokenizer);
  Detokenizer detokenizer(*tokenizer, SpecialText::literal);
  const std::string_view text = "a\u20AC\U0001F600";
  std::vector<std::string> texts;
  for (const char byte : text) {
    auto piece = detokenizer.push(static_cast<uint8_t>(byte));
    ASSERT_TRUE(piece);
    EXPECT_EQ(piece->bytes, std::string(1, byte));
    texts.push_back(piece->text);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "", "", "\u20AC", "", "", "", "\U0001F600"}));
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, InvalidAndUnfinishedBecomeReplacementCharacters) {
  const auto tokenizer = byte_tokenizer();
  ASSERT_TRUE(tokenizer);
  Detokenizer detokenizer(*tokenizer, SpecialText::literal);
  std::string text;
  for (const int32_t id : {0xE2, 0x82, 0x41, 0xFF, 0xF0, 0x9F}) text += detokenizer.push(id)->text;
  EXPECT_EQ(text, "\uFFFDA\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, ControlTokensOnRequest) {
  const auto tokenizer = byte_tokenizer();
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(Detokenizer(*tokenizer, SpecialText::literal).push(256)->text, "");
  EXPECT_EQ(Detokenizer(*tokenizer, SpecialText::parse).push(256)->text, "<end_of_turn>");
  EXPECT_EQ(Detokenizer(*tokenizer, SpecialText::parse).push(257).status().code(),
            Code::invalid_argument);
}

TEST(Detokenizer, StreamEqualsWhole) {
  const auto tokenizer = byte_tokenizer();
  ASSERT_TRUE(tokenizer);
  std::mt19937 random(3);
  // Lead and continuation bytes often enough that valid, broken and cut ones all turn up.
  const std::string_view pool = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xED\xA0\xF4\x90\xFF";
  for (int round = 0; round < 2000; ++round) {
    Detokenizer detokenizer(*tokenizer, SpecialText::literal);
    std::string bytes, streamed;
    for (int i = 0; i < 12; ++i) {
      bytes.push_back(pool[random() % pool.size()]);
      streamed += detokenizer.push(static_cast<uint8_t>(bytes.back()))->text;
    }
    streamed += detokenizer.finish();
    std::string whole;
    for (size_t at = 0; at < bytes.size();) {
      const Utf8Step step = utf8_step(bytes, at);
      whole += step.state == Utf8State::valid ? bytes.substr(at, step.bytes) : "\uFFFD";
      at += step.bytes;
    }
    ASSERT_EQ(streamed, whole);
  }
}

}  // namespace
}  // namespace optima::tokenizer
