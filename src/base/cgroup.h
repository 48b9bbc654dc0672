// Limits of control groups. A group inherits those of its ancestors, so every directory up to the
// root counts. Inside a container the path named in /proc/self/cgroup may not exist below the mount
// (it is the host's path): walking up then ends at the mount itself, which shows the container's
// own group.
#pragma once

#include <algorithm>
#include <string>

namespace optima {

// The least that `read` gives for the folders of the group `path` and of all groups above it.
template <typename Number>
Number least_of_groups(const std::string& mount, std::string path,
                       Number (*read)(const std::string& folder)) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  Number least = read(mount + path);
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
    least = std::min(least, read(mount + path));
  }
  return least;
}

}  // namespace optima
