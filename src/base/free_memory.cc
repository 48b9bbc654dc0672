// Reads /proc/meminfo and the control group file system (version 2).
#include "base/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/cgroup.h"

namespace optima {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t available(const std::string& meminfo) {
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return kNoLimit;
}

// "max" is no number, and no limit.
int64_t left_in(const std::string& folder) {
  std::ifstream limit_file(folder + "/memory.max"), use_file(folder + "/memory.current");
  int64_t limit = 0, use = 0;
  if (!(limit_file >> limit) || !(use_file >> use)) return kNoLimit;
  return std::max<int64_t>(0, limit - use);
}

std::string content(const char* path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

}  // namespace

int64_t free_memory_bytes(const std::string& meminfo, const std::string& proc_cgroup,
                          const std::string& cgroup_root) {
  int64_t least = available(meminfo);
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    least = std::min(least, least_of_groups(cgroup_root, line.substr(3), left_in));
  }
  return least == kNoLimit ? 0 : least;
}

int64_t free_memory_bytes() {
  return free_memory_bytes(content("/proc/meminfo"), content("/proc/self/cgroup"),
                           "/sys/fs/cgroup");
}

}  // namespace optima
