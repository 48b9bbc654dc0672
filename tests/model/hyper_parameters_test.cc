// Hyper-parameters that may differ by layer, and matrices that are parts of a tensor.
#include "model/hyper_parameters.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/rope.h"
#include "model/weights.h"

namespace optima::model {
namespace {

// A file of 3 layers; `change` sets further keys.
template <typename Change>
std::unique_ptr<ModelFile> file_with(Change change) {
  static const std::vector<float> numbers(1024, 0.0f);
  ModelFileParts parts;
  EXPECT_TRUE(parts.metadata.insert("general.architecture", {std::string_view("gemma4")}).ok());
  const auto set = [&](const char* key, MetadataValue value) {
    parts.strings.push_back(std::string("gemma4.") + key);
    EXPECT_TRUE(parts.metadata.insert(parts.strings.back(), std::move(value)).ok());
  };
  set("block_count", {int64_t{3}});
  set("context_length", {int64_t{64}});
  set("embedding_length", {int64_t{32}});
  set("attention.head_count", {int64_t{4}});
  set("attention.layer_norm_rms_epsilon", {1e-6});
  change(set);
  Tensor embedding;
  embedding.name = "token_embd.weight";
  embedding.shape = {32, 10, 1, 1};
  embedding.rank = 2;
  embedding.data = reinterpret_cast<const std::byte*>(numbers.data());
  embedding.bytes = 32 * 10 * 4;
  parts.tensors.push_back(embedding);
  auto file = ModelFile::create(std::move(parts));
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.take();
}

using Ints = MetadataValue::Ints;

TEST(HyperParameters, OneNumberIsThatOfAllLayers) {
  const auto file = file_with([](const auto& set) {
    set("feed_forward_length", {int64_t{48}});
    set("attention.head_count_kv", {int64_t{2}});
  });
  const auto config = HyperParameters(*file).common();
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config->layers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const LayerConfig& layer = config->layers[i];
    EXPECT_EQ(layer.ffn, 48);
    EXPECT_EQ(layer.kv_heads, 2);
    EXPECT_EQ(layer.head_dim, 8);
    EXPECT_EQ(layer.kv_owner, static_cast<int32_t>(i));
  }
}

TEST(HyperParameters, AListHasANumberForEachLayer) {
  const auto file = file_with([](const auto& set) {
    set("feed_forward_length", {Ints{48, 96, 64}});
    set("attention.head_count_kv", {Ints{1, 4, 2}});
    set("attention.key_length", {int64_t{512}});
  });
  const auto config = HyperParameters(*file).common();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->ffn, 96);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->layers[0].ffn, 48);
  EXPECT_EQ(config->layers[2].ffn, 64);
  EXPECT_EQ(config->layers[0].kv_heads, 1);
  EXPECT_EQ(config->layers[2].kv_heads, 2);
  EXPECT_EQ(config->layers[1].head_dim, 512);
}

TEST(HyperParameters, ListsThatDoNotFitAreRefused) {
  const auto status = [](const char* key, MetadataValue value) {
    const auto file = file_with([&](const auto& set) {
      if (std::string_view(key) != "feed_forward_length") set("feed_forward_length", {int64_t{48}});
      set(key, value);
    });
    return HyperParameters(*file).common().status();
  };
  const Status length = status("feed_forward_length", {Ints{48, 48}});
  EXPECT_EQ(length.code(), Code::format);
  EXPECT_NE(length.message().find("2 values for 3 layers"), std::string::npos) << length.message();
  EXPECT_EQ(status("feed_forward_length", {Ints{48, 0, 48}}).code(), Code::format);
  EXPECT_EQ(status("attention.head_count_kv", {Ints{4, 3, 4}}).code(), Code::format);
  EXPECT_EQ(status("attention.key_length", {int64_t{520}}).code(), Code::format);
  EXPECT_EQ(status("attention.key_length", {int64_t{12}}).code(), Code::unsupported);
}

// base^(-2k / head) for the pairs that turn, as transformers' proportional rope has it; 0 for the
// others.
TEST(Rope, ProportionalTurnsTheFirstPairs) {
  const auto file = file_with([](const auto& set) {
    set("rope.freq_base", {10000.0});
    set("rope.scaling.type", {std::string_view("proportional")});
    set("rope.scaling.factor", {2.0});
    set("rope.scaling.turning_pairs", {int64_t{2}});
  });
  ModelConfig config;
  const Status status = add_rope(*file, HyperParameters(*file), {.head_dim = 8}, config);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto& got = config.ropes.front().inverse_frequency;
  const double wanted[] = {0.5, 0.05, 0.0, 0.0};
  ASSERT_EQ(got.size(), std::size(wanted));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12) << i;
}

// Two experts of 3 + 2 rows of 4 columns: the second matrix of each.
TEST(Weights, ExpertsMayBePartsOfLargerOnes) {
  std::vector<float> numbers(2 * 5 * 4);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  ModelFileParts parts;
  Tensor tensor;
  tensor.name = "both";
  tensor.shape = {4, 5, 2, 1};
  tensor.rank = 3;
  tensor.data = reinterpret_cast<const std::byte*>(numbers.data());
  tensor.bytes = static_cast<int64_t>(numbers.size() * sizeof(float));
  parts.tensors.push_back(tensor);
  const auto file = ModelFile::create(std::move(parts));
  ASSERT_TRUE(file.ok()) << file.status().message();
  Weights weights(**file);
  const auto experts = weights.experts({"both", "", 3, 0}, 2, 2, 4);
  ASSERT_TRUE(experts.ok()) << experts.status().message();
  ASSERT_EQ(experts->size(), 2u);
  EXPECT_EQ(*static_cast<const float*>((*experts)[0].data), 12.0f);
  EXPECT_EQ(*static_cast<const float*>((*experts)[1].data), 32.0f);
  EXPECT_EQ((*experts)[1].rows, 2);
  const Status wrong = weights.experts({"both", "", 3, 1}, 2, 2, 4).status();
  EXPECT_EQ(wrong.code(), Code::format);
  EXPECT_NE(wrong.message().find("[2, 5, 4]"), std::string::npos) << wrong.message();
}

}  // namespace
}  // namespace optima::model
