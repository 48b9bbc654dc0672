// Ids and texts that the tokenizers library gives for small vocabularies in the manner of known
// model families (tests/goldens/make_tokenizer_json.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tokenizer/vocabulary_file.h"
#include "tokenizer/hf/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

std::string golden(std::string_view name) {
  const auto bytes =
      read_file(std::string(OPTIMA_SOURCE_DIR "/tests/goldens/tokenizer_json/").append(name));
  return bytes.value_or("");
}

// The library writes U+FFFD for what is no UTF-8, one for a byte or for several; ours keeps the
// bytes. What is left must be equal.
std::string valid_part(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.state == Utf8State::valid && step.value != 0xFFFD) {
      out.append(text.substr(at, step.bytes));
    }
    at += step.bytes;
  }
  return out;
}

class TokenizerJson : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerJson, IdsAndTextsAreEqual) {
  const std::string name = GetParam();
  auto tokenizer = load_tokenizer_json(golden(name + ".json"), {});
  ASSERT_TRUE(tokenizer) << tokenizer.status().message();
  const std::string bytes = golden(name + ".bin");
  FileReader reader(bytes);
  const uint64_t count = reader.number();
  ASSERT_GT(count, 500u);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t flags = reader.number();
    const std::string text(reader.string());
    std::vector<int32_t> wanted(reader.number());
    for (int32_t& id : wanted) id = static_cast<int32_t>(reader.number());
    const std::string decoded(reader.string());
    ASSERT_TRUE(reader.ok());
    const SpecialText special_text = (flags & 2) != 0 ? SpecialText::parse : SpecialText::literal;
    const auto ids =
        (*tokenizer)->encode(text, (flags & 1) != 0 ? Special::add : Special::omit, special_text);
    ASSERT_TRUE(ids) << ids.status().message();
    EXPECT_EQ(*ids, wanted) << testing::PrintToString(text);
    const auto back = (*tokenizer)->decode(wanted, special_text);
    ASSERT_TRUE(back) << back.status().message();
    EXPECT_EQ(valid_part(*back), valid_part(decoded)) << testing::PrintToString(text);
  }
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerJson,
                         testing::Values("albert", "bert", "bert-cased", "clip", "deepseek-coder",
                                         "deepseek-v3", "falcon", "gemma", "gpt2", "gpt2-added",
                                         "kimi", "llama2", "llama3", "mistral", "mistral-strip",
                                         "no-bytes", "o200k", "phi", "prefixed", "qwen2", "smollm2",
                                         "t5", "unigram-bytes", "words", "xlm-r"),
                         test_name);

}  // namespace
}  // namespace optima::tokenizer
