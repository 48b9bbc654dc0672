// The expected values are those of Python's bytes.decode("utf-8", "replace").
#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace optima::tokenizer {
namespace {

std::string decode_replacing(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, at);
    if (step.state == Utf8State::valid) {
      append_utf8(step.value, out);
    } else {
      out.append(kReplacementCharacter);
    }
    at += step.bytes;
  }
  return out;
}

TEST(Utf8, InvalidPartsAreMaximal) {
  const std::string bad(kReplacementCharacter);
  EXPECT_EQ(decode_replacing("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(decode_replacing("\xFF"
                             "a\xC0\x80"),
            bad + "a" + bad + bad);
  EXPECT_EQ(decode_replacing("\xE2\x82"
                             "a"),
            bad + "a");
  EXPECT_EQ(decode_replacing("\xED\xA0\x80"), bad + bad + bad);
  EXPECT_EQ(decode_replacing("\xF4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(decode_replacing("\xF0\x9F\x98"), bad);
  EXPECT_EQ(decode_replacing("\xE0\x80\xAF"), bad + bad + bad);
}

TEST(Utf8, EveryCodePointGoesThereAndBack) {
  for (char32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string utf8;
    append_utf8(value, utf8);
    const Utf8Step step = utf8_step(utf8, 0);
    ASSERT_EQ(step.state, Utf8State::valid) << static_cast<uint32_t>(value);
    ASSERT_EQ(step.value, value);
    ASSERT_EQ(step.bytes, utf8.size());
  }
}

}  // namespace
}  // namespace optima::tokenizer
