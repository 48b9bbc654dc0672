// Vocabularies of folders without tokenizer.json: Tekken files and ranks, against the ids of
// mistral_common and tiktoken (tests/goldens/folders).
#include <unistd.h>

#include <filesystem>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path kFolder = OPTIMA_SOURCE_DIR "/tests/goldens/folders";

Json read_json(const fs::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

LoadOptions vocabulary_alone() {
  LoadOptions options;
  options.content = LoadContent::vocabulary;
  return options;
}

class FolderVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(FolderVocabulary, GivesTheIdsOfTheOriginal) {
  const fs::path folder = kFolder / GetParam();
  const Json golden = read_json(folder / "golden.json");
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{folder.string()}, vocabulary_alone()));
  const tokenizer::Tokenizer* tokenizer = must(model->tokenizer());
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    const auto text = golden["texts"][i].get<std::string>();
    const std::vector<int32_t> ids =
        must(tokenizer->encode(text, tokenizer::Special::add, tokenizer::SpecialText::parse));
    EXPECT_EQ(ids, golden["ids"][i].get<std::vector<int32_t>>()) << text;
  }
  for (const Json& id : golden["ends"])
    EXPECT_TRUE(tokenizer->ends_generation(id.get<int32_t>())) << id;
}

INSTANTIATE_TEST_SUITE_P(All, FolderVocabulary,
                         testing::Values("tekken", "tekken_first", "llama3_ranks", "listed_ranks",
                                         "qwen_ranks"));

// A folder of tests/goldens/folders with one file written anew, removed at the end.
class Changed {
 public:
  Changed(const std::string& name, const std::string& file, const std::string& bytes)
      : path_(fs::temp_directory_path() / ("folder_vocabulary" + std::to_string(::getpid()))) {
    fs::copy(kFolder / name, path_);
    std::ofstream(path_ / file, std::ios::binary) << bytes;
  }
  ~Changed() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  void expect(Code code, const std::string& part) const {
    const Closing engine{new_engine()};
    const auto model = must(engine->load(model::PathSource{path_.string()}, vocabulary_alone()));
    const auto tokenizer = model->tokenizer();
    ASSERT_FALSE(tokenizer.ok()) << part;
    EXPECT_EQ(tokenizer.status().code(), code) << tokenizer.status().message();
    EXPECT_NE(tokenizer.status().message().find(part), std::string::npos)
        << tokenizer.status().message();
  }

 private:
  fs::path path_;
};

TEST(FolderVocabularies, TekkenFilesThatLieAreErrors) {
  const Json good = read_json(kFolder / "tekken/tekken.json");
  const auto expect = [&](const Json& change, Code code, const std::string& part) {
    Json bad = good;
    bad.merge_patch(change);
    Changed("tekken", "tekken.json", bad.dump()).expect(code, part);
  };
  expect({{"config", {{"default_num_special_tokens", 1000}}}}, Code::format, "1000 special ones");
  expect({{"config", {{"default_vocab_size", int64_t{1} << 60}}}}, Code::format,
         "1152921504606846976");
  expect({{"config", {{"default_vocab_size", -1}}}}, Code::format, "-1 tokens");
  expect({{"config", {{"pattern", "(a"}}}}, Code::unsupported, "pattern '(a'");
  Json vocab = good["vocab"];
  vocab[300]["rank"] = 299;
  expect({{"vocab", vocab}}, Code::format, "vocab[300]");
  vocab = good["vocab"];
  vocab[300]["token_bytes"] = vocab[299]["token_bytes"];
  expect({{"vocab", vocab}}, Code::format, "are the same bytes");
  vocab[300]["token_bytes"] = "";
  expect({{"vocab", vocab}}, Code::format, "vocab[300]");
  vocab[300]["token_bytes"] = std::string(1 << 17, 'A');
  expect({{"vocab", vocab}}, Code::format, "too long to be merged");
  Json specials = good["special_tokens"];
  specials[4]["token_str"] = "<s>";
  expect({{"special_tokens", specials}}, Code::format, "special_tokens[4]");
  for (int i = 0; i < 30; ++i) specials[i] = {{"token_str", "<" + std::to_string(i) + ">"}};
  expect({{"special_tokens", specials}}, Code::format, "24 are reserved");
  Changed("tekken", "tekken.json", "{").expect(Code::format, "tekken");
}

TEST(FolderVocabularies, RankFilesThatLieAreErrors) {
  std::ifstream file(kFolder / "listed_ranks/tokenizer.model", std::ios::binary);
  const std::string ranks{std::istreambuf_iterator<char>(file), {}};
  const std::string model = "tokenizer.model";
  Changed("listed_ranks", model, ranks + "QUFBQUE= 7\n").expect(Code::format, "line 377");
  Changed("listed_ranks", model, ranks + "QUFBQUE= 400\n").expect(Code::format, "rank 376");
  Changed("listed_ranks", model, ranks + "QUFBQUE= 99999999999999999999\n")
      .expect(Code::format, "line 377");
  Changed("listed_ranks", model, ranks + "QQ== 376\n").expect(Code::format, "the same bytes");
  Changed("listed_ranks", "config.json", R"({"model_type": "gemma2"})")
      .expect(Code::unsupported, "'gemma2'");
  const std::string settings = "tokenizer_config.json";
  const auto listed = [](const std::string& id) {
    return R"({"bos_token": "<|start|>", "added_tokens_decoder": {")" + id +
           R"(": {"content": "<|start|>"}}})";
  };
  Changed("listed_ranks", settings, listed("7")).expect(Code::format, "has id 7");
  Changed("listed_ranks", settings, listed("x")).expect(Code::format, "'x' is no id");
  Changed("listed_ranks", settings, listed("4000000000")).expect(Code::format, "'4000000000'");
  Changed("listed_ranks", settings, listed("2000000000")).expect(Code::format, "2000000000");
}

}  // namespace
}  // namespace optima::engine
