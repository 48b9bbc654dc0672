// Ids that tokenizers, sentencepiece and llama.cpp give for one list of strings, over vocabularies
// of each pre-tokeniser and each manner of SentencePiece (tests/goldens/make_tokenizer.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tokenizer/vocabulary_file.h"

namespace optima::tokenizer {
namespace {

std::string golden_path(std::string_view name) {
  return std::string(OPTIMA_SOURCE_DIR "/tests/goldens/tokenizer/").append(name) + ".bin";
}

std::vector<std::string> read_strings() {
  const std::optional<std::string> bytes = read_file(golden_path("strings"));
  std::vector<std::string> strings;
  if (!bytes) return strings;
  FileReader reader(*bytes);
  const uint64_t count = reader.number();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) strings.emplace_back(reader.string());
  return strings;
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, IdsAreEqual) {
  const std::vector<std::string> strings = read_strings();
  ASSERT_GT(strings.size(), 1000u);
  const std::optional<std::string> bytes = read_file(golden_path(GetParam()));
  ASSERT_TRUE(bytes);
  FileReader reader(*bytes);
  VocabularyFile file;
  ASSERT_TRUE(file.read(reader));
  auto tokenizer = Tokenizer::create(file.spec());
  ASSERT_TRUE(tokenizer) << tokenizer.status().message();
  const std::vector<GoldenCase> cases = read_cases(reader);
  ASSERT_GT(cases.size(), 1000u);
  for (const GoldenCase& item : cases) {
    ASSERT_LT(item.string, strings.size());
    const std::string& text = strings[item.string];
    auto ids = (*tokenizer)->encode(text, item.special, item.special_text);
    ASSERT_TRUE(ids) << ids.status().message();
    EXPECT_EQ(*ids, item.ids) << testing::PrintToString(text);
  }
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Golden,
                         testing::Values("gpt-2", "default", "smollm", "command-r", "llama-bpe",
                                         "qwen2", "qwen35", "tekken", "gpt-4o", "sentencepiece",
                                         "sentencepiece-collapse", "sentencepiece-unknown",
                                         "gemma-like", "smollm2", "falcon", "mpt", "olmo",
                                         "chatglm-bpe", "deepseek-llm", "deepseek-coder",
                                         "deepseek-v3", "bert-bge", "gemma4", "t5", "t5-bytes",
                                         "unigram-symbols", "bpe-symbols"),
                         test_name);

}  // namespace
}  // namespace optima::tokenizer
