#include "base/new_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace optima {
namespace {

namespace fs = std::filesystem;

class NewFiles : public testing::Test {
 protected:
  NewFiles() { fs::create_directories(folder_); }
  ~NewFiles() override { fs::remove_all(folder_); }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_ = fs::temp_directory_path() / ("new_file" + std::to_string(::getpid()));
  std::string path_ = (folder_ / "file").string();
};

TEST_F(NewFiles, AppearWholeOrNotAtAll) {
  {
    auto file = NewFile::create(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("abc", 3).ok());
    EXPECT_FALSE(fs::exists(path_));
    ASSERT_TRUE(file->write("de", 2).ok());
    ASSERT_TRUE(file->keep().ok());
  }
  EXPECT_EQ(read(), "abcde");
  {
    auto file = NewFile::create(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("other", 5).ok());
  }
  EXPECT_EQ(read(), "abcde") << "given up";
  EXPECT_EQ(entries(), 1);
}

TEST_F(NewFiles, FailWithThePath) {
  const auto file = NewFile::create((folder_ / "none/file").string());
  ASSERT_EQ(file.status().code(), Code::io);
  EXPECT_NE(file.status().message().find("none/file"), std::string::npos);
  fs::create_directories(folder_ / "taken/full");
  auto onto = NewFile::create((folder_ / "taken").string());
  ASSERT_TRUE(onto.ok());
  EXPECT_EQ(onto->keep().code(), Code::io);
}

}  // namespace
}  // namespace optima
