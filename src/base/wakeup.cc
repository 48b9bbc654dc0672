// An eventfd: a counter that is readable while it is not 0. raise() and lower() move it between 0
// and 1, so each is one system call where something changes and none where nothing does.
#include "base/wakeup.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#endif

#include "base/text.h"

namespace optima {

#if defined(__linux__)

namespace {

Status no_descriptor(const char* call) {
  return Status(Code::io, text(call, ": ", std::generic_category().message(errno)));
}

}  // namespace

Result<Wakeup> Wakeup::create() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return no_descriptor("eventfd");
  return Wakeup(fd);
}

Wakeup::~Wakeup() {
  if (fd_ >= 0) ::close(fd_);
}

// Neither can fail but where the host has read or written the descriptor itself.
void Wakeup::raise() noexcept {
  if (std::exchange(raised_, true)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
}

void Wakeup::lower() noexcept {
  if (!std::exchange(raised_, false)) return;
  uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(fd_, &count, sizeof count);
}

Result<int> Wakeup::duplicate() const {
  const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return no_descriptor("fcntl");
  return fd;
}

#else

Result<Wakeup> Wakeup::create() {
  return Status(Code::unsupported, "this system has no eventfd to wake an event loop with");
}
Wakeup::~Wakeup() = default;
void Wakeup::raise() noexcept {}
void Wakeup::lower() noexcept {}
Result<int> Wakeup::duplicate() const {
  return Status(Code::unsupported, "this system has no eventfd");
}

#endif

}  // namespace optima
