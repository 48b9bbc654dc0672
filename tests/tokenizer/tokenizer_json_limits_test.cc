// Files that lie, and texts that are no UTF-8: a Status or ids, in bounded time.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <random>

#include "base/text.h"
#include "tests/tokenizer/vocabulary_file.h"
#include "tokenizer/hf/regex_translate.h"
#include "tokenizer/hf/sentencepiece_model.h"
#include "tokenizer/hf/tiktoken.h"
#include "tokenizer/hf/tokenizer_json.h"

namespace optima::tokenizer {
namespace {

constexpr const char* kFamilies[] = {"albert", "bert",          "clip",   "falcon",
                                     "gemma",  "gpt2-added",    "llama2", "llama3",
                                     "phi",    "unigram-bytes", "words",  "xlm-r"};

std::string golden(std::string_view name) {
  return read_file(text(OPTIMA_SOURCE_DIR "/tests/goldens/tokenizer_json/", name)).value_or("");
}

std::string with(std::string_view members) {
  return text(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})", members,
              "}");
}

Status load_error(const std::string& json) {
  auto made = load_tokenizer_json(json, {});
  return made.ok() ? Status() : made.take_status();
}

// Processor time, so that a busy machine fails no test.
double seconds_of(const std::function<void()>& action) {
  const std::clock_t begin = std::clock();
  action();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(TokenizerJsonLimits, SmallestFileWorks) {
  auto tokenizer = load_tokenizer_json(with(""), {});
  ASSERT_TRUE(tokenizer) << tokenizer.status().message();
  EXPECT_EQ(*(*tokenizer)->encode("abba", Special::add, SpecialText::parse),
            (std::vector<int32_t>{2, 1, 0}));
}

TEST(TokenizerJsonLimits, UnknownComponentsAreNamedWithTheirPlace) {
  struct Row {
    const char *members, *type, *place;
  };
  const Row rows[] = {
      {R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"Rot13"}]})", "Rot13",
       "normalizer.normalizers[0]"},
      {R"(,"pre_tokenizer":{"type":"UnicodeScripts"})", "UnicodeScripts", "pre_tokenizer"},
      {R"(,"post_processor":{"type":"Sequence","processors":[{"type":"New"}]})", "New",
       "post_processor.processors[0]"},
      {R"(,"decoder":{"type":"CTC"})", "CTC", "decoder"},
  };
  for (const Row& row : rows) {
    const Status status = load_error(with(row.members));
    EXPECT_EQ(status.code(), Code::unsupported) << row.members;
    EXPECT_NE(status.message().find(row.type), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(row.place), std::string::npos) << status.message();
  }
  EXPECT_EQ(load_error(R"({"model":{"type":"WordLevel","vocab":{}}})").code(), Code::unsupported);
}

TEST(TokenizerJsonLimits, ContradictionsAreFormatErrors) {
  const std::string files[] = {
      "",
      "[]",
      "{}",
      "nonsense",
      R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})",
      R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})",
      R"({"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}})",
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":"1"},"merges":[]}})",
      R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})",
      R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}})",
      R"({"model":{"type":"Unigram","vocab":[["a"]],"unk_id":0}})",
      R"({"model":{"type":"Unigram","vocab":[["a",0.0]],"unk_id":7}})",
      R"({"model":{"type":"Unigram","vocab":[],"unk_id":null}})",
      with(R"(,"post_processor":{"type":"BertProcessing","sep":["x",99],"cls":["y",0]})"),
      with(R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"////"})"),
      with(R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"?"})"),
      with(R"(,"added_tokens":[{"id":3}])"),
      with(R"(,"added_tokens":7)"),
  };
  for (const std::string& file : files) {
    EXPECT_EQ(load_error(file).code(), Code::format) << file;
  }
}

TEST(TokenizerJsonLimits, NestingIsBounded) {
  for (const size_t depth : {20u, 1'000'000u}) {
    std::string nested = R"(,"normalizer":)";
    for (size_t i = 0; i < depth; ++i) nested += R"({"type":"Sequence","normalizers":[)";
    EXPECT_EQ(load_error(with(nested)).code(), Code::format);
    for (size_t i = 0; i < depth; ++i) nested += "]}";
    EXPECT_EQ(load_error(with(nested)).code(), Code::format) << depth;
  }
}

TEST(TokenizerJsonLimits, CatastrophicPatternsEndInTime) {
  for (const char* pattern : {"(a+)+$", "(a|a)*b", "(a*)*c", "(?:a?){30}a{30}b", "(.*)*x",
                              "(?:a|a)*[^a]!", "(?:a+a+)+[^a]!"}) {
    const std::string members = text(R"(,"pre_tokenizer":{"type":"Split","behavior":"Isolated",)",
                                     R"("invert":false,"pattern":{"Regex":")", pattern, R"("}})");
    auto tokenizer = load_tokenizer_json(with(members), {});
    ASSERT_TRUE(tokenizer) << tokenizer.status().message();
    const std::string input = std::string(3000, 'a') + "\n!";
    EXPECT_LT(seconds_of([&] {
                static_cast<void>((*tokenizer)->encode(input, Special::add, SpecialText::parse));
              }),
              60)
        << pattern;
  }
}

TEST(TokenizerJsonLimits, PatternsThatAreNotKnownAreRefused) {
  for (const char* pattern :
       {"(*UCP)a", "a\\1", "\\Q", "(?<x>a)\\k<x>", "[[:alpha:]]", "(?R)", "\\C", "(?#x)", "[a",
        "a)", "(", "*", "\\", "[\\W]", "\\p{Nonsense}", "(?s:.)", "[]", "\\xE4", "x{2,1}"}) {
    auto tokenizer = load_tokenizer_json(
        with(text(R"(,"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":")",
                  [&] {
                    std::string escaped;
                    for (const char* c = pattern; *c != '\0'; ++c) {
                      if (*c == '\\') escaped += '\\';
                      escaped += *c;
                    }
                    return escaped;
                  }(),
                  R"("}})")),
        {});
    EXPECT_FALSE(tokenizer.ok()) << pattern;
    EXPECT_EQ(tokenizer.status().code(), Code::unsupported) << tokenizer.status().message();
  }
}

TEST(TokenizerJsonLimits, TimeGrowsNearlyWithTheText) {
  for (const char* family : kFamilies) {
    auto tokenizer = load_tokenizer_json(golden(text(family, ".json")), {});
    ASSERT_TRUE(tokenizer) << tokenizer.status().message();
    for (const char* unit : {"a", " ", "\n", "<", "\xCC\x81", "\xE4\xB8\xAD"}) {
      std::string input;
      while (input.size() < 200'000) input += unit;
      EXPECT_LT(seconds_of([&] {
                  auto ids = (*tokenizer)->encode(input, Special::add, SpecialText::parse);
                  EXPECT_TRUE(ids) << ids.status().message();
                }),
                30)
          << family << ' ' << testing::PrintToString(unit);
    }
  }
}

TEST(TokenizerJsonLimits, AnyBytesHaveIds) {
  std::mt19937 random(7);
  for (const char* family : kFamilies) {
    auto tokenizer = load_tokenizer_json(golden(text(family, ".json")), {});
    ASSERT_TRUE(tokenizer) << tokenizer.status().message();
    for (int round = 0; round < 300; ++round) {
      std::string input(random() % 40, '\0');
      for (char& c : input) {
        c = static_cast<char>(random() % 3 == 0 ? random() % 256 : 0x60 + random() % 0x80);
      }
      auto ids = (*tokenizer)->encode(input, Special::omit, SpecialText::literal);
      ASSERT_TRUE(ids) << ids.status().message();
      ASSERT_TRUE((*tokenizer)->decode(*ids, SpecialText::parse));
    }
  }
}

TEST(TokenizerJsonLimits, ByteVocabulariesGiveInvalidBytesBack) {
  const std::string input = "a\xFF\xFE b\xE2\x96 \xC3";
  for (const char* family : {"gpt2", "llama3", "llama2", "gemma"}) {
    auto tokenizer = load_tokenizer_json(golden(text(family, ".json")), {});
    ASSERT_TRUE(tokenizer) << tokenizer.status().message();
    auto ids = (*tokenizer)->encode(input, Special::omit, SpecialText::literal);
    ASSERT_TRUE(ids);
    auto back = (*tokenizer)->decode(*ids, SpecialText::literal);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, input) << family;
  }
}

TEST(TokenizerJsonConfig, BosAndEosFollowTheConfiguration) {
  const std::string json = golden("llama2.json");
  const auto ids_with = [&](HfTokenizerConfig config) {
    auto tokenizer = load_tokenizer_json(json, config);
    EXPECT_TRUE(tokenizer) << tokenizer.status().message();
    return *(*tokenizer)->encode("a", Special::add, SpecialText::parse);
  };
  const std::vector<int32_t> plain = ids_with({.bos_token = "<s>", .eos_token = "</s>"});
  ASSERT_EQ(plain.size(), 2u);
  const int32_t bos = plain[0], a = plain[1];
  EXPECT_EQ(ids_with({.bos_token = "<s>", .eos_token = "</s>", .add_bos = 0}),
            (std::vector<int32_t>{a}));
  EXPECT_EQ(ids_with({.bos_token = "<s>", .eos_token = "</s>", .add_bos = 1, .add_eos = 1}),
            (std::vector<int32_t>{bos, a, 2}));
  EXPECT_EQ(load_tokenizer_json(json, {.bos_token = "<none>"}).status().code(), Code::format);
  EXPECT_EQ(load_tokenizer_json(json, {.add_bos = 1}).status().code(), Code::format);
  const int32_t end[] = {5};
  auto tokenizer = load_tokenizer_json(json, {.eos_token = "</s>", .end_ids = end});
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE((*tokenizer)->ends_generation(5));
  EXPECT_TRUE((*tokenizer)->ends_generation((*tokenizer)->find("</s>")));
  EXPECT_FALSE((*tokenizer)->ends_generation(a));
}

TEST(TokenizerFiles, DamagedOnesAreErrors) {
  EXPECT_EQ(load_sentencepiece_model("", {}).status().code(), Code::format);
  EXPECT_EQ(load_sentencepiece_model("\x0A\x7F", {}).status().code(), Code::format);
  EXPECT_EQ(
      load_sentencepiece_model("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", {}).status().code(),
      Code::format);
  EXPECT_EQ(load_tiktoken("", "llama3").status().code(), Code::format);
  EXPECT_EQ(load_tiktoken("AA== 0\n", "llama3").status().code(), Code::format);
  EXPECT_EQ(load_tiktoken("AA== 99999999999\n", "qwen").status().code(), Code::format);
  EXPECT_EQ(load_tiktoken("AA== 0\n", "gpt-9").status().code(), Code::unsupported);
  EXPECT_EQ(load_tekken("{}").status().code(), Code::format);
}

TEST(RegexTranslate, RewritesWhatTheEnginesReadDifferently) {
  const auto of = [](std::string_view pattern, hf::Dialect dialect = hf::Dialect::oniguruma) {
    auto made = hf::translate_pattern(pattern, dialect);
    return made.ok() ? made.take() : made.status().message();
  };
  EXPECT_EQ(of("[^\\r\\n\\p{L}]?\\p{N}{1,3}"), "[^\\r\\n\\p{L}]?\\p{N}{1,3}");
  EXPECT_EQ(of("\\p{Han}+"), "\\p{sc:Han}+");
  EXPECT_EQ(of("a{,3}"), "a{0,3}");
  EXPECT_EQ(of("a{1,3}+"), "(?:a{1,3})+");
  EXPECT_EQ(of("a{1,3}+", hf::Dialect::rust), "a{1,3}+");
  EXPECT_EQ(of("a{2}?"), "(?:a{2})?");
  EXPECT_EQ(of("[\\p{L}&&[^\\p{Han}]]"), "(?:(?=[^\\p{sc:Han}])[\\p{L}])");
  EXPECT_EQ(of("\\v\\h"), "\\x0B[0-9a-fA-F]");
  EXPECT_EQ(of("x{y}"), "x\\{y\\}");
}

}  // namespace
}  // namespace optima::tokenizer
