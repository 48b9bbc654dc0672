// Folders that lie, lack something or ask for what is not computed: each is a status that names the
// place. The base of all is a good checkpoint of tests/goldens/arch with one thing changed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/arch/arch.h"
#include "model/hf/safetensors.h"

namespace optima::model {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const std::string& name = "llama")
      : path_(fs::temp_directory_path() /
              ("hf_folder" + std::to_string(::getpid()) + "_" + std::to_string(count_++))) {
    fs::create_directory(path_);
    for (const auto& entry :
         fs::directory_iterator(fs::path(OPTIMA_SOURCE_DIR "/tests/goldens/arch") / name))
      if (entry.path().extension() != ".gguf" && entry.path().extension() != ".bin")
        fs::copy_file(entry.path(), path_ / entry.path().filename());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  std::string read(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  void remove(const std::string& name) const { fs::remove(path_ / name); }
  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string bytes = read(name);
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(name, bytes.replace(at, from.size(), to));
  }
  // The header of a safetensors file changed, its length kept by spaces.
  void change_header(const std::string& name, const std::string& from,
                     const std::string& to) const {
    std::string bytes = read(name);
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    bytes.replace(at, from.size(), to);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    length += to.size() - from.size();
    std::memcpy(bytes.data(), &length, sizeof length);
    write(name, bytes);
  }

  std::string path() const { return path_.string(); }

  Status status() const {
    Allocator allocator({}, 0);
    const auto file = open_model_file(PathSource{path_.string()}, allocator, {});
    if (!file.ok()) return file.status();
    return build_decoder(**file).status();
  }
  void expect(Code code, const std::string& part) const {
    const Status found = status();
    EXPECT_EQ(found.code(), code) << found.message();
    EXPECT_NE(found.message().find(part), std::string::npos) << found.message();
  }

 private:
  static inline int count_ = 0;
  fs::path path_;
};

TEST(HfFolder, TheFolderItselfBuilds) {
  EXPECT_TRUE(Folder().status().ok()) << Folder().status().message();
  EXPECT_TRUE(Folder("llama_llama3").status().ok());
}

TEST(HfFolder, MissingFilesAreNamed) {
  const Folder config, weights, shard;
  config.remove("config.json");
  config.expect(Code::format, "config.json");
  weights.remove("model.safetensors");
  weights.expect(Code::format, "model.safetensors");
  const Folder sharded("llama_llama3");
  sharded.remove("model-00002-of-00004.safetensors");
  sharded.expect(Code::io, "model-00002-of-00004.safetensors");
}

TEST(HfFolder, WhatConfigAsksAndIsNotKnownIsNamed) {
  const Folder type, key, scaling, nothing, wrong, array;
  type.replace("config.json", "\"model_type\": \"llama\"", "\"model_type\": \"lhama\"");
  type.expect(Code::unsupported, "'lhama'");
  key.replace("config.json", "\"use_cache\"", "\"use_magic\"");
  key.expect(Code::unsupported, "'use_magic'");
  scaling.replace("config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"magic\"");
  scaling.expect(Code::unsupported, "'magic'");
  nothing.replace("config.json", "\"hidden_size\"", "\"hidden_syze\"");
  nothing.expect(Code::format, "'hidden_size' is missing");
  wrong.replace("config.json", "\"hidden_size\": ", "\"hidden_size\": 0.5, \"ignored\": ");
  wrong.expect(Code::format, "'hidden_size'");
  const Folder layers, part;
  layers.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000000000000");
  layers.expect(Code::format, "1000000000000");
  part.replace("config.json", "\"rope_theta\": 10000.0",
               "\"rope_theta\": 10000.0, \"partial_rotary_factor\": 1e300");
  part.expect(Code::format, "partial_rotary_factor");
  const Folder huge, text, twice;
  huge.replace("config.json", "\"intermediate_size\": 36",
               "\"intermediate_size\": 9223372036854775807");
  huge.expect(Code::format, "'intermediate_size'");
  text.replace("config.json", "\"use_cache\"", "\"rope_scaling\": \"yarn\", \"use_cache\"");
  text.expect(Code::unsupported, "'rope_scaling'");
  twice.replace("config.json", "\"rope_parameters\": {", "\"rope_parameters\": 7, \"was\": {");
  twice.expect(Code::format, "should be is none");
  array.write("config.json", "[1, 2");
  array.expect(Code::format, "config.json");
}

TEST(HfFolder, AVocabularyNeedsNeitherWeightsNorAKnownArchitecture) {
  const Folder folder;
  folder.replace("config.json", "\"model_type\": \"llama\"", "\"model_type\": \"lhama\"");
  folder.remove("model.safetensors");
  Allocator allocator({}, 0);
  const auto file =
      open_model_file(PathSource{folder.path()}, allocator, {FileContent::vocabulary, {}});
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE((*file)->document("tokenizer.json").has_value());
  EXPECT_TRUE((*file)->tensors().empty());
}

TEST(HfFolder, AHeadThatIsNotThereIsNotGuessed) {
  const Folder folder("qwen3");
  folder.replace("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  folder.expect(Code::format, "lm_head.weight");
}

TEST(HfFolder, AnIndexCannotLeadOutside) {
  for (const char* name : {"../secret.safetensors", "/etc/passwd", "..", ""}) {
    const Folder folder("llama_llama3");
    folder.replace("model.safetensors.index.json", "\"model-00001-of-00004.safetensors\"",
                   "\"" + std::string(name) + "\"");
    folder.expect(Code::format, "no name of a file in the folder");
  }
  const Folder elsewhere("llama_llama3");
  elsewhere.replace("model.safetensors.index.json", "\"model-00001-of-00004.safetensors\"",
                    "\"model-00004-of-00004.safetensors\"");
  elsewhere.expect(Code::format, "where the index puts it");
}

TEST(HfFolder, TensorsThatLieAreNamed) {
  const std::string file = "model.safetensors";
  const Folder type, name, offsets, shape, header, truncated, empty;
  type.change_header(file, "\"dtype\":\"F32\"", "\"dtype\":\"C64\"");
  type.expect(Code::unsupported, "'C64'");
  name.change_header(file, "model.norm.weight", "model.nurm.weight");
  name.expect(Code::unsupported, "'model.nurm.weight'");
  offsets.change_header(file, "\"data_offsets\":[0,", "\"data_offsets\":[4,");
  offsets.expect(Code::format, "data_offsets");
  shape.change_header(file, "\"shape\":[24]", "\"shape\":[25]");
  shape.expect(Code::format, "the shape takes");
  std::string bytes = header.read(file);
  const uint64_t huge = 100'000'000'000;
  std::memcpy(bytes.data(), &huge, sizeof huge);
  header.write(file, bytes);
  header.expect(Code::format, "100000000000");
  bytes = truncated.read(file);
  truncated.write(file, bytes.substr(0, bytes.size() - 8));
  truncated.expect(Code::format, "data_offsets");
  empty.write(file, "");
  EXPECT_FALSE(empty.status().ok());
}

TEST(HfFolder, HowWeightsAreQuantisedIsKnownOrNamed) {
  EXPECT_TRUE(Folder("llama_fp8").status().ok()) << Folder("llama_fp8").status().message();
  const struct {
    const char *folder, *from, *to;
    Code code;
    const char* part;
  } kRows[] = {
      {"qwen3_fp8", "\"fp8\"", "\"awq\"", Code::unsupported,
       "'awq'; supported: compressed-tensors"},
      {"qwen3_fp8", "\"quant_method\"", "\"quant_methud\"", Code::format,
       "'quant_method' is missing"},
      {"qwen3_fp8", "\"e4m3\"", "\"e5m2\"", Code::unsupported, "'e5m2'"},
      {"qwen3_fp8", "\"fmt\"", "\"fnt\"", Code::unsupported, "'fnt'"},
      {"qwen3_fp8", "20,", "0,", Code::format, "a block of 0 x 8"},
      {"qwen3_fp8", "20,", "9007199254740992,", Code::format, "9007199254740992"},
      {"qwen3_fp8", "20,", "20, 8,", Code::format, "'weight_block_size' is no pair"},
      {"qwen3_fp8", "20,", "40,", Code::format, "weight_scale_inv"},
      {"qwen3_fp8", "\"quantization_config\": {", "\"quantization_config\": 7, \"x\": {",
       Code::format, "'quant_method'"},
      {"llama_fp8", "float-quantized", "marlin-24", Code::unsupported, "'marlin-24'"},
      {"llama_fp8", "\"channel\",\n          \"symmetric\": true",
       "\"channel\", \"symmetric\": false", Code::unsupported, "'symmetric' is 'false'"},
      {"llama_fp8", "\"channel\"", "\"tensor_group\"", Code::unsupported, "'tensor_group'"},
      {"llama_fp8", "\"config_groups\": {", "\"config_groups\": [], \"x\": {", Code::format,
       "'config_groups'"},
      {"llama_fp8", "\"ignore\"", "\"transform_config\": {\"r1\": {}}, \"ignore\"",
       Code::unsupported, "'transform_config'"},
      {"llama_fp8", "\"ignore\"",
       "\"sparsity_config\": {\"format\": \"sparse-24-bitmask\"}, \"ignore\"", Code::unsupported,
       "'sparse-24-bitmask'"},
      {"llama_int4", "\"group_size\": 32", "\"group_size\": 0", Code::format, "a block of 1 x 0"},
      {"llama_int4", "\"group_size\": 32", "\"group_size\": 64", Code::format, "weight_scale"},
  };
  for (const auto& row : kRows) {
    const Folder folder(row.folder);
    folder.replace("config.json", row.from, row.to);
    folder.expect(row.code, row.part);
  }
  const Folder without("qwen3_fp8");
  without.replace("config.json", "\"quantization_config\"", "\"id2label\"");
  without.expect(Code::unsupported, "weight_scale_inv' is not known");
}

// A folder with an image part, of which the text part is computed.
TEST(HfFolder, TheTextPartOfACompositeModelIsTaken) {
  Allocator allocator({}, 0);
  const Folder folder("gemma3_images");
  const auto file = open_model_file(PathSource{folder.path()}, allocator, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto left_out = (*file)->metadata().string("general.left_out");
  ASSERT_TRUE(left_out.ok() && *left_out);
  EXPECT_NE((*left_out)->find("tensors of gemma3 are left out"), std::string_view::npos);
  EXPECT_EQ((*file)->find("model.vision_tower.patch_conv.weight"), nullptr);
  const struct {
    const char *folder, *from, *to;
    Code code;
    const char* part;
  } kRows[] = {
      {"gemma3_images", "\"text_config\": {", "\"text_config\": 7, \"id2label\": {", Code::format,
       "'text_config' is no object"},
      {"gemma3_images", "\"text_config\"", "\"test_config\"", Code::format,
       "'text_config' is no object"},
      {"gemma3_images", "\"text_config\": {", "\"text_config\": {\"text_config\": {}, ",
       Code::unsupported, "'text_config' is not known"},
      {"gemma3_images", "\"mm_tokens_per_image\"", "\"mm_tokens\"", Code::unsupported,
       "'mm_tokens'"},
      {"gemma3_images", "\"gemma3_text\"", "\"gemma9_text\"", Code::unsupported, "'gemma9_text'"},
      {"gemma3_images", "\"gemma3_text\"", "\"gemma3\"", Code::unsupported,
       "'gemma3' is not known"},
  };
  for (const auto& row : kRows) {
    const Folder changed(row.folder);
    changed.replace("config.json", row.from, row.to);
    changed.expect(row.code, row.part);
  }
  const Folder tensor("llava_images");
  tensor.change_header("model.safetensors", "\"vision_tower.post_layernorm.bias\"",
                       "\"vision_trower.post_layernorm.bias\"");
  tensor.expect(Code::unsupported, "'vision_trower.post_layernorm.bias' is not known");
}

// What a text_config leaves out is what its class in transformers fills in.
TEST(HfFolder, ATextConfigMayLeaveOutWhatIsUsual) {
  const Folder folder("gemma3_images");
  folder.write("config.json", R"({"model_type": "gemma3", "vision_config": {}, "text_config": {
      "model_type": "gemma3_text", "hidden_size": 40, "num_hidden_layers": 2, "vocab_size": 297,
      "sliding_window": 10, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})");
  Allocator allocator({}, 0);
  const auto file = open_model_file(PathSource{folder.path()}, allocator, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Metadata& metadata = (*file)->metadata();
  EXPECT_EQ(*metadata.integer("gemma3.attention.head_count"), 8);
  EXPECT_EQ(*metadata.integer("gemma3.attention.head_count_kv"), 4);
  EXPECT_EQ(*metadata.integer("gemma3.attention.key_length"), 256);
  EXPECT_EQ(*metadata.integer("gemma3.context_length"), 131072);
  EXPECT_EQ(*metadata.integer("gemma3.attention.sliding_window"), 10);
}

TEST(HfFolder, RangesMustNotOverlap) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})";
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  file += header + std::string(12, '\0');
  const auto tensors = parse_safetensors(std::as_bytes(std::span(file.data(), file.size())));
  ASSERT_FALSE(tensors.ok());
  EXPECT_NE(tensors.status().message().find("overlap"), std::string::npos);
}

TEST(HfFolder, EveryCutAndFlippedByteOfAHeaderIsSurvived) {
  const Folder folder;
  const std::string whole = folder.read("model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  for (size_t i = 0; i < 8 + length; i += 7) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x15);
    const auto bytes = std::as_bytes(std::span(flipped.data(), flipped.size()));
    static_cast<void>(parse_safetensors(bytes));
    static_cast<void>(parse_safetensors(bytes.first(i)));
  }
}

}  // namespace
}  // namespace optima::model
