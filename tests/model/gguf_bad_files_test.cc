// Crafted files: each must fail with the code and the words that tell its fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "tests/model/gguf_bytes.h"

namespace optima::model::test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kHuge = uint64_t{1} << 63;

struct BadFile {
  const char* name;
  std::string bytes;
  Code code;
  std::vector<std::string> words;  // all must be in the message
};
void PrintTo(const BadFile& file, std::ostream* out) {
  *out << file.name;
}

GgufBytes one_key() {
  return GgufBytes().header(0, 1);
}
GgufBytes one_tensor() {
  return GgufBytes().header(1, 0);
}

std::string swapped_file() {
  std::string bytes = GgufBytes().header(0, 0).bytes();
  for (size_t field : {4u, 8u, 16u})
    std::reverse(bytes.begin() + static_cast<long>(field),
                 bytes.begin() + static_cast<long>(field + (field == 4 ? 4 : 8)));
  return bytes;
}

std::vector<BadFile> bad_headers() {
  const Code format = Code::format, unsupported = Code::unsupported;
  return {
      {"magic", "GGML\3\0\0\0\0\0\0\0", format, {"not a GGUF file", "'GGML'"}},
      {"binary_magic", std::string("\x7f\x45LF\0\0\0\0", 8), format, {"'\\x7fELF'"}},
      {"short_magic", "GG", format, {"truncated", "magic"}},
      {"version_0", GgufBytes().header(0, 0, 0).bytes(), unsupported, {"version 0"}},
      {"version_1", GgufBytes().header(0, 0, 1).bytes(), unsupported, {"version 1", "2 and 3"}},
      {"version_4", GgufBytes().header(0, 0, 4).bytes(), unsupported, {"version 4", "2 and 3"}},
      {"big_endian", swapped_file(), unsupported, {"big-endian"}},
      {"huge_keys",
       GgufBytes().header(0, kHuge).bytes(),
       format,
       {"metadata", "9223372036854775808"}},
      {"huge_tensors",
       GgufBytes().header(kHuge, 0).bytes(),
       format,
       {"tensors", "9223372036854775808"}},
      {"keys_2_60",
       GgufBytes().header(0, uint64_t{1} << 60).bytes(),
       format,
       {"1152921504606846976"}},
      {"keys_beyond_file",
       GgufBytes().header(0, 9).data(100).bytes(),
       format,
       {"count 9", "at most 8"}},
      {"keys_above_limit",
       GgufBytes().header(0, 70000).data(70000 * 13).bytes(),
       format,
       {"70000", "limit is 65536"}},
  };
}

std::vector<BadFile> bad_keys_and_values() {
  const Code format = Code::format;
  return {
      {"key_length", one_key().put(kHuge).data(64).bytes(), format, {"metadata key", "truncated"}},
      {"key_empty", one_key().key<uint32_t>("", kUint32, 1).data(8).bytes(), format, {"is empty"}},
      {"key_long",
       one_key().key<uint8_t>(std::string(65536, 'k'), kUint8, 1).bytes(),
       format,
       {"65536 bytes", "limit is 65535"}},
      {"key_zero_byte",
       one_key().key<uint8_t>({"a\0b", 3}, kUint8, 1).bytes(),
       format,
       {"'a\\x00b'", "zero byte"}},
      {"key_twice",
       GgufBytes()
           .header(0, 2)
           .key<uint32_t>("k", kUint32, 1)
           .key<uint32_t>("k", kUint32, 1)
           .bytes(),
       format,
       {"'k'", "twice"}},
      {"value_type", one_key().key<uint32_t>("k", 13, 0).bytes(), format, {"'k'", "type id 13"}},
      {"value_truncated",
       one_key().key<uint32_t>("k", kUint64, 0).bytes(),
       format,
       {"'k'", "truncated", "takes 8 bytes"}},
      {"string_length",
       one_key().key<uint64_t>("k", kString, 1000).data(20).bytes(),
       format,
       {"'k'", "takes 1000 bytes"}},
      {"string_huge",
       one_key().key<uint64_t>("k", kString, ~uint64_t{0}).bytes(),
       format,
       {"18446744073709551615"}},
      {"uint64_max",
       one_key().key<uint64_t>("k", kUint64, kHuge).bytes(),
       format,
       {"'k'", "9223372036854775808", "limit of 9223372036854775807"}},
      {"bool_7", one_key().key<uint8_t>("k", kBool, 7).bytes(), format, {"'k'", "bool", "is 7"}},
  };
}

std::vector<BadFile> bad_arrays() {
  const Code format = Code::format;
  const auto array = [](uint32_t type, uint64_t count) {
    return one_key().str("k").put<uint32_t>(kArray).put(type).put(count);
  };
  return {
      {"bool_array_7",
       array(kBool, 2).put<uint8_t>(1).put<uint8_t>(7).bytes(),
       format,
       {"item 1", "is 7"}},
      {"array_of_array",
       array(kArray, 1).data(64).bytes(),
       Code::unsupported,
       {"'k'", "array of arrays"}},
      {"array_type", array(99, 1).bytes(), format, {"'k'", "type id 99"}},
      {"array_count",
       array(kUint32, 5).put(uint64_t{0}).bytes(),
       format,
       {"'k'", "count 5", "at most 2"}},
      {"array_2_60", array(kUint8, uint64_t{1} << 60).bytes(), format, {"1152921504606846976"}},
      {"array_2_63", array(kString, kHuge).bytes(), format, {"9223372036854775808"}},
      {"array_string",
       array(kString, 2).str("a").put(kHuge).bytes(),
       format,
       {"'k'", "item 1", "truncated"}},
  };
}

std::vector<BadFile> bad_known_keys() {
  const Code format = Code::format;
  return {
      {"alignment_0",
       one_key().key<uint32_t>("general.alignment", kUint32, 0).bytes(),
       format,
       {"general.alignment is 0"}},
      {"alignment_3",
       one_key().key<uint32_t>("general.alignment", kUint32, 48).bytes(),
       format,
       {"general.alignment is 48", "power of two"}},
      {"alignment_4",
       one_key().key<uint32_t>("general.alignment", kUint32, 4).bytes(),
       format,
       {"general.alignment is 4"}},
      {"alignment_huge",
       one_key().key<uint64_t>("general.alignment", kUint64, kHuge >> 1).bytes(),
       format,
       {"general.alignment is 4611686018427387904"}},
      {"alignment_negative",
       one_key().key<int32_t>("general.alignment", kInt32, -32).bytes(),
       format,
       {"general.alignment is -32"}},
      {"alignment_string",
       one_key().str("general.alignment").put<uint32_t>(kString).str("32").bytes(),
       format,
       {"general.alignment", "string", "integer"}},
      {"split_no",
       GgufBytes()
           .header(0, 2)
           .key<uint32_t>("split.no", kUint32, 2)
           .key<uint32_t>("split.count", kUint32, 2)
           .bytes(),
       format,
       {"split.no is 2", "split.count is 2"}},
      {"split_count",
       one_key().key<int32_t>("split.count", kInt32, -1).bytes(),
       format,
       {"split.count is -1"}},
      {"split_memory",
       one_key().key<uint32_t>("split.count", kUint32, 3).bytes(),
       Code::unsupported,
       {"memory", "part 1 of a set of 3", "by path"}},
  };
}

std::vector<BadFile> bad_tensor_infos() {
  const Code format = Code::format;
  const std::string long_name(65, 'n');
  return {
      {"name_empty",
       one_tensor().tensor("", {1}, 0, 0).data(64).bytes(),
       format,
       {"name", "empty"}},
      {"name_long",
       one_tensor().tensor(long_name, {1}, 0, 0).data(64).bytes(),
       format,
       {"65 bytes", "limit is 64"}},
      {"name_huge", one_tensor().put(kHuge).data(64).bytes(), format, {"tensor name", "truncated"}},
      {"name_twice",
       GgufBytes().header(2, 0).tensor("a", {1}, 0, 0).tensor("a", {1}, 0, 32).data(64).bytes(),
       format,
       {"tensor 'a' appears twice"}},
      {"rank_0", one_tensor().tensor("a", {}, 0, 0).data(64).bytes(), format, {"'a'", "rank 0"}},
      {"rank_5",
       one_tensor().tensor("a", {1, 1, 1, 1, 1}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "rank 5"}},
      {"dimension_0",
       one_tensor().tensor("a", {4, 0}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "dimension 1 is 0"}},
      {"dimension_negative",
       one_tensor().tensor("a", {~uint64_t{0}}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "dimension 0 is 18446744073709551615"}},
      {"product",
       one_tensor().tensor("a", {1ull << 32, 1ull << 31}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "product"}},
      {"product_wraps",
       one_tensor().tensor("a", {1ull << 62, 1ull << 62, 4}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "product"}},
      {"bytes_overflow",
       one_tensor().tensor("a", {1ull << 62}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "blocks of 4 bytes"}},
      {"type_unknown",
       one_tensor().tensor("a", {256}, 16, 0).data(512).bytes(),
       Code::unsupported,
       {"memory", "'a'", "type id 16"}},
      {"type_huge",
       one_tensor().tensor("a", {256}, 0x80000000u, 0).data(512).bytes(),
       Code::unsupported,
       {"type id 2147483648"}},
      {"row_block",
       one_tensor().tensor("a", {48}, 2, 0).data(64).bytes(),
       format,
       {"'a'", "48", "32 values", "Q4_0"}},
  };
}

std::vector<BadFile> bad_tensor_places() {
  const Code format = Code::format;
  const auto two = [](uint64_t second_offset) {
    return GgufBytes()
        .header(2, 0)
        .tensor("a", {16}, 0, 0)
        .tensor("b", {16}, 0, second_offset)
        .data(256)
        .bytes();
  };
  return {
      {"offset_misaligned",
       one_tensor().tensor("a", {1}, 0, 16).data(64).bytes(),
       format,
       {"'a'", "offset 16", "alignment 32"}},
      {"offset_beyond",
       one_tensor().tensor("a", {1}, 0, 96).data(64).bytes(),
       format,
       {"'a'", "offset 96", "64 bytes"}},
      {"offset_overflow",
       one_tensor().tensor("a", {8}, 0, ~uint64_t{31}).data(64).bytes(),
       format,
       {"'a'", "18446744073709551584"}},
      {"data_short",
       one_tensor().tensor("a", {17}, 0, 0).data(64).bytes(),
       format,
       {"'a'", "68 bytes at offset 0", "64 bytes"}},
      {"data_absent",
       one_tensor().tensor("a", {1}, 0, 0).bytes(),
       format,
       {"truncated", "tensor data"}},
      {"overlap", two(32), format, {"'a'", "'b'", "overlap"}},
      {"same_place", two(0), format, {"overlap"}},
      {"count_too_high",
       GgufBytes().header(40, 0).tensor("a", {1}, 0, 0).data(64).bytes(),
       format,
       {"tensors", "count 40"}},
  };
}

class GgufBadFile : public testing::TestWithParam<BadFile> {};

TEST_P(GgufBadFile, FailsAndSaysWhy) {
  const BadFile& file = GetParam();
  const MemoryModel model(file.bytes);
  ASSERT_FALSE(model.gguf.ok());
  const Status& status = model.gguf.status();
  EXPECT_EQ(status.code(), file.code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("memory: ")) << "names the source";
  for (const std::string& word : file.words) EXPECT_THAT(status.message(), HasSubstr(word));
}

std::string case_name(const testing::TestParamInfo<BadFile>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Headers, GgufBadFile, testing::ValuesIn(bad_headers()), case_name);
INSTANTIATE_TEST_SUITE_P(KeysAndValues, GgufBadFile, testing::ValuesIn(bad_keys_and_values()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Arrays, GgufBadFile, testing::ValuesIn(bad_arrays()), case_name);
INSTANTIATE_TEST_SUITE_P(KnownKeys, GgufBadFile, testing::ValuesIn(bad_known_keys()), case_name);
INSTANTIATE_TEST_SUITE_P(TensorInfos, GgufBadFile, testing::ValuesIn(bad_tensor_infos()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(TensorPlaces, GgufBadFile, testing::ValuesIn(bad_tensor_places()),
                         case_name);

TEST(GgufBadFiles, TheSameTableIsGoodWithoutTheFault) {
  const MemoryModel empty(GgufBytes().header(0, 0).bytes());
  EXPECT_TRUE(empty.gguf.ok()) << empty.gguf.status().message();
  const MemoryModel tensors(GgufBytes()
                                .header(2, 0)
                                .tensor("a", {16}, 0, 0)
                                .tensor("b", {32, 1, 1, 2}, 2, 64)
                                .data(100)
                                .bytes());
  ASSERT_TRUE(tensors.gguf.ok()) << tensors.gguf.status().message();
  EXPECT_EQ((*tensors.gguf)->tensors()[1].bytes, 36);
}

TEST(GgufBadFiles, TruncatedAtEveryByteIsAnError) {
  for (const char* name : {"metadata.gguf", "version2.gguf", "tensors.gguf", "alignment64.gguf"}) {
    const std::string whole = read_file(golden_path(name));
    ASSERT_GT(whole.size(), 0u);
    // metadata.gguf has no tensors; the bytes after its last value are padding that nobody needs.
    const size_t padding = whole.find_last_not_of('\0') + 1;
    const bool tensors = MemoryModel(whole).gguf.value()->tensors().size() > 0;
    const size_t end = tensors ? whole.size() : padding;
    size_t failures = 0;
    for (size_t size = 0; size < end; ++size) {
      const MemoryModel model(std::string_view(whole).substr(0, size));
      if (model.gguf.ok()) continue;
      ++failures;
      EXPECT_FALSE(model.gguf.status().message().empty());
    }
    // The last tensor is padded as well: fewer bytes than the alignment may be missing.
    EXPECT_GE(failures, end - (tensors ? 64 : 0)) << name;
  }
}

TEST(GgufBadFiles, AMisalignedSourceIsRefusedByName) {
  const std::string bytes = GgufBytes().header(1, 0).tensor("a", {1}, 0, 0).data(64).bytes();
  std::vector<std::byte> room(bytes.size() + 1);
  std::memcpy(room.data() + 1, bytes.data(), bytes.size());
  Allocator allocator{HostAllocator(), 0};
  const auto gguf = open_gguf(MemorySource{room.data() + 1, static_cast<int64_t>(bytes.size())},
                               allocator, Progress());
  ASSERT_FALSE(gguf.ok());
  EXPECT_EQ(gguf.status().code(), Code::unsupported);
  EXPECT_THAT(gguf.status().message(), HasSubstr("no multiple of 4"));
}

}  // namespace
}  // namespace optima::model::test
