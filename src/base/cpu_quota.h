// The CPU time that control groups grant this process, as a number of threads.
#pragma once

#include <string>

namespace optima {

// The smallest ceil(quota / period) on the way from the process's groups to the root, for cgroup
// v1 (controller cpu) and v2; 0 = no limit found. proc_cgroup: the text of /proc/self/cgroup;
// cgroup_root: where the hierarchies are mounted, usually /sys/fs/cgroup.
int cpu_quota_threads(const std::string& proc_cgroup, const std::string& cgroup_root);

}  // namespace optima
