// A descriptor that is readable while something waits, for the event loop of a host (poll, epoll,
// select). Without a lock.
#pragma once

#include <utility>

#include "base/status.h"

namespace optima {

class Wakeup {
 public:
  // `unsupported` where the system has no eventfd; `io` when no descriptor is left.
  static Result<Wakeup> create();
  Wakeup(Wakeup&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), raised_(std::exchange(other.raised_, false)) {}
  Wakeup& operator=(Wakeup&&) = delete;
  ~Wakeup();

  void raise() noexcept;  // readable from now on
  void lower() noexcept;  // not any longer
  // Another descriptor of the same, which the caller closes; it shows what this one shows, and
  // what it showed last once this one is gone. Closed by exec.
  Result<int> duplicate() const;

 private:
  explicit Wakeup(int fd) : fd_(fd) {}
  int fd_;
  bool raised_ = false;
};

}  // namespace optima
