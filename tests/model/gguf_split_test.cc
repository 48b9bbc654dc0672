// Split sets with something wrong: every message names the file or part that is at fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/model/gguf_bytes.h"

namespace optima::model::test {
namespace {

using testing::HasSubstr;

struct Part {
  uint32_t number = 0;  // as split.no has it: from 0
  uint32_t count = 2;
  uint32_t tensors_in_set = 2;
  std::string_view tensor = "a";
};

std::string part_bytes(const Part& part) {
  return GgufBytes()
      .header(1, 3)
      .key("split.no", kUint32, part.number)
      .key("split.count", kUint32, part.count)
      .key("split.tensors.count", kInt32, part.tensors_in_set)
      .tensor(part.tensor, {1}, 0, 0)
      .data(32)
      .bytes();
}

class GgufSplit : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "optima_gguf_split_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }
  void write(std::string_view name, const Part& part) { write_file(path(name), part_bytes(part)); }
  Result<std::unique_ptr<ModelFile>> open(std::string_view name) {
    return open_gguf(PathSource{path(name)}, allocator_, Progress());
  }
  void expect_failure(std::string_view name, Code code, const std::vector<std::string>& words) {
    const auto gguf = open(name);
    ASSERT_FALSE(gguf.ok());
    EXPECT_EQ(gguf.status().code(), code) << gguf.status().message();
    for (const std::string& word : words) EXPECT_THAT(gguf.status().message(), HasSubstr(word));
  }

  std::string folder_;
  Allocator allocator_{HostAllocator(), 0};
};

TEST_F(GgufSplit, OpensFromEitherPart) {
  write("m-00001-of-00002.gguf", {.number = 0, .tensor = "a"});
  write("m-00002-of-00002.gguf", {.number = 1, .tensor = "b"});
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const auto gguf = open(name);
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    ASSERT_EQ((*gguf)->tensors().size(), 2u);
    EXPECT_EQ((*gguf)->tensors()[0].name, "a");
    EXPECT_EQ((*gguf)->metadata().integer("split.no")->value(), 0);
  }
}

TEST_F(GgufSplit, NamesAMissingPart) {
  write("m-00002-of-00002.gguf", {.number = 1});
  expect_failure("m-00002-of-00002.gguf", Code::io,
                 {"part 1 of 2", path("m-00001-of-00002.gguf"), "errno 2"});
}

TEST_F(GgufSplit, RefusesARenamedPart) {
  write("model.gguf", {});
  expect_failure("model.gguf", Code::format, {"model.gguf", "part 1 of a set of 2"});
  write("m-00002-of-00002.gguf", {.number = 0});
  expect_failure("m-00002-of-00002.gguf", Code::format, {"part 1 of a set of 2", "part 2 of 2"});
}

TEST_F(GgufSplit, RefusesAPartOfAnotherSet) {
  write("m-00001-of-00002.gguf", {.number = 0});
  write("m-00002-of-00002.gguf", {.number = 1, .count = 3});
  expect_failure("m-00001-of-00002.gguf", Code::format,
                 {path("m-00002-of-00002.gguf"), "part 2 of 3", "expected part 2 of 2"});
}

TEST_F(GgufSplit, RefusesATensorThatIsInTwoParts) {
  write("m-00001-of-00002.gguf", {.number = 0});
  write("m-00002-of-00002.gguf", {.number = 1});
  expect_failure("m-00001-of-00002.gguf", Code::format,
                 {path("m-00002-of-00002.gguf"), "tensor 'a'", "earlier part"});
}

TEST_F(GgufSplit, CountsTheTensorsOfTheSet) {
  write("m-00001-of-00002.gguf", {.number = 0, .tensors_in_set = 3, .tensor = "a"});
  write("m-00002-of-00002.gguf", {.number = 1, .tensors_in_set = 3, .tensor = "b"});
  expect_failure("m-00001-of-00002.gguf", Code::format,
                 {"split.tensors.count is 3", "hold 2 tensors"});
}

TEST_F(GgufSplit, RefusesADamagedPartByName) {
  write("m-00001-of-00002.gguf", {.number = 0});
  write_file(path("m-00002-of-00002.gguf"), "GGUF");
  expect_failure("m-00001-of-00002.gguf", Code::format,
                 {"part 2 of 2", path("m-00002-of-00002.gguf"), "truncated"});
}

TEST_F(GgufSplit, ASetOfOneNeedsNoSpecialName) {
  write("model.gguf", {.number = 0, .count = 1, .tensors_in_set = 1});
  EXPECT_TRUE(open("model.gguf").ok());
}

TEST_F(GgufSplit, ProgressCancels) {
  write("m-00001-of-00002.gguf", {.number = 0, .tensor = "a"});
  write("m-00002-of-00002.gguf", {.number = 1, .tensor = "b"});
  for (const float last : {0.0f, 0.5f, 1.0f}) {
    const auto gguf = open_gguf(PathSource{path("m-00001-of-00002.gguf")}, allocator_,
                                 [&](float fraction) { return fraction < last; });
    ASSERT_FALSE(gguf.ok());
    EXPECT_EQ(gguf.status().code(), Code::cancelled);
  }
}

}  // namespace
}  // namespace optima::model::test
