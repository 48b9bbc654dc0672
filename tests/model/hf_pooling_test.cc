// What modules.json and the pooling module's config.json may say, and what is refused by name.
#include "model/hf/hf_pooling.h"

#include <gtest/gtest.h>

namespace optima::model {
namespace {

json::Value parsed(const std::string& text) {
  Result<json::Value> value = json::parse(text);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.take();
}

std::string module(const std::string& type, const std::string& path) {
  return R"({"idx":0,"name":"0","path":")" + path + R"(","type":"sentence_transformers.models.)" +
         type + "\"}";
}

TEST(HfPooling, ModulesInOrder) {
  const auto modules =
      read_modules(parsed("[" + module("Transformer", "") + "," + module("Pooling", "1_Pooling") +
                          "," + module("Normalize", "2_Normalize") + "]"));
  ASSERT_TRUE(modules.ok()) << modules.status().message();
  EXPECT_EQ(modules->pooling_folder, "1_Pooling");
  EXPECT_TRUE(modules->normalises);
  const auto bare = read_modules(parsed("[" + module("Transformer", "") + "]"));
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->pooling_folder, "");
  EXPECT_FALSE(bare->normalises);
}

TEST(HfPooling, AModuleThatIsNotKnownIsNamed) {
  const auto modules = read_modules(parsed("[" + module("Dense", "2_Dense") + "]"));
  EXPECT_EQ(modules.status().code(), Code::unsupported);
  EXPECT_NE(modules.status().message().find("Dense"), std::string::npos);
}

TEST(HfPooling, NoPathLeadsOutOfTheFolder) {
  for (const char* path : {"", "..", ".", "../other", "/etc", "a/b"}) {
    const auto modules = read_modules(parsed("[" + module("Pooling", path) + "]"));
    EXPECT_EQ(modules.status().code(), Code::format) << path;
  }
  EXPECT_EQ(read_modules(parsed("{}")).status().code(), Code::format);
  EXPECT_EQ(read_modules(parsed("[{}]")).status().code(), Code::format);
  EXPECT_EQ(read_modules(parsed(R"([{"type":1,"path":"x"}])")).status().code(), Code::format);
}

Status translated(const std::string& config, int64_t& type) {
  ModelFileParts parts;
  MetadataWriter out(parts, "bert");
  OPTIMA_TRY(translate_pooling(parsed(config), out));
  OPTIMA_ASSIGN(const auto value, parts.metadata.integer("bert.pooling_type"));
  type = value.value_or(-1);
  return {};
}

TEST(HfPooling, ModesAreThoseOfGguf) {
  const std::pair<const char*, int64_t> rows[] = {
      {R"({"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false})", 1},
      {R"({"pooling_mode_cls_token":true,"word_embedding_dimension":4})", 2},
      {R"({"pooling_mode_lasttoken":true,"include_prompt":true})", 3}};
  for (const auto& [config, wanted] : rows) {
    int64_t type = 0;
    const Status status = translated(config, type);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(type, wanted) << config;
  }
}

TEST(HfPooling, ModesThatAreNotComputedAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"pooling_mode_max_tokens":true})", "pooling_mode_max_tokens"},
      {R"({"pooling_mode_weightedmean_tokens":true})", "weightedmean"},
      {R"({"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true})", "both"},
      {R"({"pooling_mode_mean_tokens":false})", "no mode"}};
  for (const auto& [config, word] : rows) {
    int64_t type = 0;
    const Status status = translated(config, type);
    EXPECT_EQ(status.code(), Code::unsupported) << config;
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace optima::model
