#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace optima {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeminfo = "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:    600 kB\n";

class FreeMemory : public testing::Test {
 protected:
  FreeMemory() { fs::create_directories(root_ / "a/b"); }
  ~FreeMemory() override { fs::remove_all(root_); }
  void put(const std::string& folder, const std::string& limit, int64_t use) const {
    std::ofstream(root_ / folder / "memory.max") << limit << "\n";
    std::ofstream(root_ / folder / "memory.current") << use << "\n";
  }
  int64_t read(const std::string& cgroup, const std::string& meminfo = kMeminfo) const {
    return free_memory_bytes(meminfo, cgroup, root_.string());
  }
  fs::path root_ = fs::temp_directory_path() / ("free_memory" + std::to_string(::getpid()));
};

TEST_F(FreeMemory, IsTheLeastOfAll) {
  EXPECT_EQ(read("0::/a/b\n"), 600 * 1024);
  put("a/b", "max", 5);
  EXPECT_EQ(read("0::/a/b\n"), 600 * 1024);
  put("a/b", "5000", 1000);
  EXPECT_EQ(read("0::/a/b\n"), 4000);
  put("a", "9000", 8500);
  EXPECT_EQ(read("0::/a/b\n"), 500) << "the parent's limit holds too";
  put("a", "100", 8500);
  EXPECT_EQ(read("0::/a/b\n"), 0);
  EXPECT_EQ(read("0::/a/b/not/there\n"), 0) << "the host's path, seen from a container";
  EXPECT_EQ(read("0::/\n"), 600 * 1024);
}

TEST_F(FreeMemory, SaysWhenItDoesNotKnow) {
  EXPECT_EQ(read("", "nothing"), 0);
  EXPECT_EQ(read("1:memory:/a\n", ""), 0);
  EXPECT_GT(free_memory_bytes(), 1 << 20) << "of this process";
}

}  // namespace
}  // namespace optima
