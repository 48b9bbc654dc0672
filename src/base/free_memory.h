// How much memory the process may still take without harm to others.
#pragma once

#include <cstdint>
#include <string>

namespace optima {

// The least of what the system says is available and what each control group above the process has
// left. `meminfo`: content of /proc/meminfo; `proc_cgroup`: of /proc/self/cgroup; `cgroup_root`:
// where control groups are mounted. 0 when nothing of it can be read.
int64_t free_memory_bytes(const std::string& meminfo, const std::string& proc_cgroup,
                          const std::string& cgroup_root);
// Of this process, now.
int64_t free_memory_bytes();

}  // namespace optima
