// What an architecture refuses: files that lack a tensor, hold one too many, contradict their
// hyper-parameters or ask for something that is not computed. Each case is a small valid file with
// a few bytes changed.
#include <gtest/gtest.h>

#include <fstream>

#include "model/arch/arch.h"
#include "model/gguf.h"
#include "model/rope.h"

namespace optima::model {
namespace {

std::string file_bytes(const char* name) {
  std::ifstream file(std::string(OPTIMA_SOURCE_DIR "/tests/goldens/tiny/") + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Replaces one occurrence by text of the same length.
std::string with(std::string bytes, const std::string& from, const std::string& to) {
  EXPECT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return bytes.replace(at, from.size(), to);
}

// Changes the uint32 value of a metadata key: key, type id, value.
std::string with_u32(std::string bytes, const std::string& key, uint32_t value) {
  const size_t at = bytes.find(key);
  EXPECT_NE(at, std::string::npos) << key;
  for (size_t i = 0; i < 4; ++i)
    bytes[at + key.size() + 4 + i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

Status status_of(const std::string& bytes) {
  Allocator allocator({}, 0);
  const auto file = open_gguf(MemorySource{reinterpret_cast<const std::byte*>(bytes.data()),
                                            static_cast<int64_t>(bytes.size())},
                               allocator, {});
  if (!file.ok()) return file.status();
  return build_decoder(**file).status();
}

void expect(const std::string& bytes, Code code, const std::string& part) {
  const Status status = status_of(bytes);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(Architecture, TheFilesThemselvesBuild) {
  for (const char* name : {"llama-f32.gguf", "llama-q4_0.gguf", "gemma3-f32.gguf"})
    EXPECT_TRUE(status_of(file_bytes(name)).ok()) << status_of(file_bytes(name)).message();
}

TEST(Architecture, UnknownNamesAreRefusedByName) {
  std::string bytes = file_bytes("llama-f32.gguf");
  const std::string key = "general.architecture";
  const size_t value = bytes.find("llama", bytes.find(key) + key.size());
  bytes.replace(value, 5, "lhama");
  expect(bytes, Code::unsupported, "'lhama'");
}

TEST(Architecture, MissingAndUnknownTensorsAreNamed) {
  const std::string bytes = file_bytes("llama-f32.gguf");
  expect(with(bytes, "blk.1.attn_v.weight", "blk.1.attn_z.weight"), Code::format,
         "'blk.1.attn_v.weight' is missing");
  expect(with(bytes, "output_norm.weight", "output_nurm.weight"), Code::format,
         "'output_norm.weight' is missing");
  expect(with_u32(bytes, "llama.block_count", 1), Code::unsupported, "blk.1.");
}

TEST(Architecture, SizesThatContradictAreNamed) {
  const std::string bytes = file_bytes("llama-f32.gguf");
  expect(with_u32(bytes, "llama.feed_forward_length", 7), Code::format, "has shape");
  expect(with_u32(bytes, "llama.attention.head_count", 0), Code::format, "head_count");
  expect(with_u32(bytes, "llama.block_count", 4000000000u), Code::format, "block_count");
  expect(with_u32(bytes, "llama.embedding_length", 4), Code::unsupported, "head size");
  expect(with(bytes, "llama.context_length", "llama.context_lengzz"), Code::format,
         "'llama.context_length' is missing");
}

TEST(Architecture, RopeFrequenciesFollowTheFormula) {
  const graph::RopeTable table = plain_rope(10000, 8, kernels::RopePairs::halves);
  ASSERT_EQ(table.inverse_frequency.size(), 4u);
  EXPECT_DOUBLE_EQ(table.inverse_frequency[0], 1);
  EXPECT_DOUBLE_EQ(table.inverse_frequency[2], 0.01);
}

}  // namespace
}  // namespace optima::model
