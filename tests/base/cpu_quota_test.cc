// Quotas are read from a made-up control group tree.
#include "base/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace optima {
namespace {

class CpuQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "optima_quota_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(CpuQuota, NoneWithoutGroups) {
  EXPECT_EQ(cpu_quota_threads("", root_), 0);
  EXPECT_EQ(cpu_quota_threads("0::/\n", root_), 0);
  EXPECT_EQ(cpu_quota_threads("nonsense\n:::\n", root_), 0);
}

TEST_F(CpuQuota, Version2RoundsUp) {
  write("a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota_threads("0::/a\n", root_), 2);
  write("a/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota_threads("0::/a\n", root_), 2);
  write("a/cpu.max", "1000 100000\n");
  EXPECT_EQ(cpu_quota_threads("0::/a\n", root_), 1);
  write("a/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota_threads("0::/a\n", root_), 0);
}

TEST_F(CpuQuota, AncestorsCount) {
  write("cpu.max", "max 100000\n");
  write("a/cpu.max", "300000 100000\n");
  write("a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpu_quota_threads("0::/a/b\n", root_), 3);
  EXPECT_EQ(cpu_quota_threads("0::/a/b/absent\n", root_), 3);
}

TEST_F(CpuQuota, Version1) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota_threads("4:memory:/job\n2:cpu,cpuacct:/job\n", root_), 3);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_quota_threads("2:cpu,cpuacct:/job\n", root_), 0);
}

// A container on v1 is told the host's path, but its mount shows its own group as the root.
TEST_F(CpuQuota, Version1ContainerSeesItsGroupAtTheMount) {
  write("cpu/cpu.cfs_quota_us", "100000\n");
  write("cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cpu_quota_threads("3:cpuset:/x\n1:cpu:/docker/0123\n0::/\n", root_), 2);
}

TEST_F(CpuQuota, HybridMountOfVersion2) {
  write("unified/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpu_quota_threads("0::/\n", root_), 4);
}

}  // namespace
}  // namespace optima
