// Reads CPU quotas out of the control group file system.
#include "base/cpu_quota.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/cgroup.h"

namespace optima {
namespace {

constexpr int kNoQuota = std::numeric_limits<int>::max();

int threads_of(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return kNoQuota;
  const int64_t threads = quota / period + (quota % period != 0 ? 1 : 0);
  return threads < kNoQuota ? static_cast<int>(threads) : kNoQuota;
}

// v2: one file "max 100000" or "150000 100000".
int quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  int64_t quota = 0;
  int64_t period = 0;
  if (!(file >> quota >> period)) return kNoQuota;
  return threads_of(quota, period);
}

// v1: two files; a quota of -1 is no limit.
int quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  int64_t quota = 0;
  int64_t period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return kNoQuota;
  return threads_of(quota, period);
}

bool lists_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

int cpu_quota_threads(const std::string& proc_cgroup, const std::string& cgroup_root) {
  int least = kNoQuota;
  const auto take = [&least](int threads) {
    if (threads < least) least = threads;
  };
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    // "hierarchy-id:controllers:path"; v2 is "0::path".
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      take(least_of_groups(cgroup_root, path, quota_v2));
      take(least_of_groups(cgroup_root + "/unified", path, quota_v2));
    } else if (lists_cpu(controllers)) {
      take(least_of_groups(cgroup_root + "/" + controllers, path, quota_v1));
      take(least_of_groups(cgroup_root + "/cpu", path, quota_v1));
    }
  }
  return least == kNoQuota ? 0 : least;
}

}  // namespace optima
