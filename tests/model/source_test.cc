// The four kinds of source: the bytes they give, how they fail, and how a load is cancelled.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/model/gguf_bytes.h"

namespace optima::model::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

std::string pattern(size_t bytes) {
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>((i * 131) >> 3);
  return out;
}

std::string_view as_text(std::span<const std::byte> view) {
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

int open_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

class SourceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "optima_source_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/mod\xc3\xa8le \xe4\xbd\xa0.bin";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<std::unique_ptr<Bytes>> open(const Source& source) {
    fractions_.clear();
    return open_bytes(source, allocator_, [this](float fraction) {
      fractions_.push_back(fraction);
      return fraction < cancel_at_;
    });
  }
  void expect_failure(const Source& source, Code code, const std::string& word) {
    const auto bytes = open(source);
    ASSERT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.status().code(), code) << bytes.status().message();
    EXPECT_THAT(bytes.status().message(), HasSubstr(word));
    EXPECT_EQ(allocator_.bytes_used(), 0);
  }

  std::string folder_, path_;
  Allocator allocator_{HostAllocator(), 64 * kMiB};
  std::vector<float> fractions_;
  float cancel_at_ = 2.0f;
};

TEST_F(SourceTest, MapsAPath) {
  const std::string content = pattern(100000);
  write_file(path_, content);
  const int before = open_descriptors();
  {
    const auto bytes = open(PathSource{path_});
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(as_text((*bytes)->view()), content);
    EXPECT_EQ((*bytes)->name(), path_);
    EXPECT_EQ(allocator_.bytes_used(), 0);
    EXPECT_EQ(open_descriptors(), before) << "a mapping keeps no descriptor";
    (*bytes)->prefetch();
  }
  EXPECT_EQ(fractions_, (std::vector<float>{0.0f, 1.0f}));
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SourceTest, RefusesPathsThatAreNoFiles) {
  expect_failure(PathSource{path_}, Code::io, path_ + ": open failed: No such file");
  expect_failure(PathSource{folder_}, Code::io, "is a directory");
  expect_failure(PathSource{""}, Code::invalid_argument, "the path is empty");
  expect_failure(PathSource{std::string("/dev\0/x", 7)}, Code::invalid_argument, "zero byte");
  expect_failure(PathSource{"/dev/null"}, Code::io, "not a regular file");
  write_file(path_, "");
  expect_failure(PathSource{path_}, Code::format, "empty");
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  expect_failure(PathSource{fifo}, Code::io, "not a regular file");  // and does not wait
}

TEST_F(SourceTest, MapsARangeOfADescriptor) {
  const std::string content = pattern(20000);
  write_file(path_, content);
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  struct Range {
    int64_t offset, length;
  };
  for (const Range range :
       {Range{0, 0}, {0, 20000}, {1, 0}, {4095, 4098}, {4096, 4096}, {8200, 1}, {19999, 1}}) {
    const auto bytes = open(DescriptorSource{descriptor, range.offset, range.length});
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const size_t length = range.length == 0 ? std::string::npos : static_cast<size_t>(range.length);
    EXPECT_EQ(as_text((*bytes)->view()), content.substr(static_cast<size_t>(range.offset), length));
  }
  const auto kept = open(DescriptorSource{descriptor, 4097, 100});
  EXPECT_EQ(::close(descriptor), 0) << "still the caller's to close";
  EXPECT_EQ(as_text((*kept)->view()), content.substr(4097, 100));
}

TEST_F(SourceTest, RefusesDescriptorRangesThatAreNotThere) {
  write_file(path_, pattern(100));
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  expect_failure(DescriptorSource{descriptor, -1, 0}, Code::invalid_argument, "offset -1");
  expect_failure(DescriptorSource{descriptor, 0, -5}, Code::invalid_argument, "length -5");
  expect_failure(DescriptorSource{descriptor, 100, 0}, Code::invalid_argument, "offset 100");
  expect_failure(DescriptorSource{descriptor, 60, 41}, Code::invalid_argument, "only 40 bytes");
  expect_failure(DescriptorSource{descriptor, 1, INT64_MAX}, Code::invalid_argument,
                 "9223372036854775807");
  ::close(descriptor);
  expect_failure(DescriptorSource{descriptor, 0, 0}, Code::io, "errno 9");
  expect_failure(DescriptorSource{-1, 0, 0}, Code::io, "descriptor -1");
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  expect_failure(DescriptorSource{pipe_ends[0], 0, 0}, Code::io, "not a regular file");
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST_F(SourceTest, UsesMemoryWhereItLies) {
  const std::string content = pattern(100);
  const auto* data = reinterpret_cast<const std::byte*>(content.data());
  const auto bytes = open(MemorySource{data, 100});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)->view().data(), data);
  EXPECT_EQ((*bytes)->view().size(), 100u);
  (*bytes)->prefetch();
  expect_failure(MemorySource{nullptr, 100}, Code::invalid_argument, "null");
  expect_failure(MemorySource{data, 0}, Code::invalid_argument, "length 0");
  expect_failure(MemorySource{data, -1}, Code::invalid_argument, "length -1");
}

TEST_F(SourceTest, ReadsCallbacksInPiecesWithProgress) {
  const std::string content = pattern(static_cast<size_t>(40 * kMiB + 5));
  const auto length = static_cast<int64_t>(content.size());
  std::vector<int64_t> pieces;
  const CallbackSource source{length, [&](void* into, int64_t offset, int64_t wanted) {
                                pieces.push_back(wanted);
                                std::memcpy(into, content.data() + offset,
                                            static_cast<size_t>(wanted));
                                return true;
                              }};
  {
    const auto bytes = open(source);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_TRUE(as_text((*bytes)->view()) == content);
    EXPECT_GE(allocator_.bytes_used(), length);
  }
  EXPECT_EQ(allocator_.bytes_used(), 0);
  EXPECT_EQ(pieces, (std::vector<int64_t>{16 * kMiB, 16 * kMiB, 8 * kMiB + 5}));
  ASSERT_EQ(fractions_.size(), 4u);
  EXPECT_EQ(fractions_.front(), 0.0f);
  EXPECT_EQ(fractions_.back(), 1.0f);
  EXPECT_TRUE(std::is_sorted(fractions_.begin(), fractions_.end()));
}

TEST_F(SourceTest, ReadsCallbacksWithoutAProgressFunction) {
  const auto bytes =
      open_bytes(CallbackSource{3,
                                [](void* into, int64_t, int64_t wanted) {
                                  std::memset(into, 'x', static_cast<size_t>(wanted));
                                  return true;
                                }},
                 allocator_, Progress());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(as_text((*bytes)->view()), "xxx");
}

TEST_F(SourceTest, CallbackFailuresAreStatuses) {
  int calls = 0;
  const auto read = [&](void*, int64_t, int64_t) { return ++calls < 2; };
  expect_failure(CallbackSource{20 * kMiB, read}, Code::io, "at offset 16777216 of 20971520");
  expect_failure(CallbackSource{0, read}, Code::invalid_argument, "length 0");
  expect_failure(CallbackSource{-7, read}, Code::invalid_argument, "length -7");
  expect_failure(CallbackSource{100, nullptr}, Code::invalid_argument, "no read function");
  expect_failure(CallbackSource{65 * kMiB, read}, Code::oom_host, "limit of 67108864");
  expect_failure(CallbackSource{INT64_MAX, read}, Code::oom_host, "model bytes");
  EXPECT_EQ(calls, 2) << "nothing is read where there is no memory for it";
}

TEST_F(SourceTest, ProgressCancelsEveryKind) {
  write_file(path_, "x");
  int calls = 0;
  const CallbackSource callback{40 * kMiB, [&](void*, int64_t, int64_t) {
                                  ++calls;
                                  return true;
                                }};
  for (const float at : {0.0f, 1.0f}) {
    cancel_at_ = at;
    expect_failure(PathSource{path_}, Code::cancelled, "cancelled");
    expect_failure(callback, Code::cancelled, "cancelled");
  }
  EXPECT_EQ(calls, 3) << "nothing is read once 0 was answered with false";
  cancel_at_ = 0.5f;
  calls = 0;
  expect_failure(callback, Code::cancelled, "cancelled");
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace optima::model::test
