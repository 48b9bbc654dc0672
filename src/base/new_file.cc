// See new_file.h.
#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace optima {
namespace {

Status io_error(const std::string& path, const char* what, int number) {
  return Status(Code::io, text(path, ": ", what, ": ", std::generic_category().message(number)));
}

}  // namespace

Result<NewFile> NewFile::create(const std::string& path) {
  std::string written = path + ".XXXXXX";
  const int descriptor = ::mkostemp(written.data(), O_CLOEXEC);
  if (descriptor < 0) return io_error(path, "cannot be created", errno);
  return NewFile(path, std::move(written), descriptor);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      written_(std::move(other.written_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(written_.c_str());
}

Status NewFile::failure(const char* what) const {
  return io_error(path_, what, errno);
}

Status NewFile::write(const void* from, int64_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t done = ::write(descriptor_, at, static_cast<size_t>(bytes));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failure("cannot be written");
    at += done;
    bytes -= done;
  }
  return {};
}

Status NewFile::keep() {
  if (::fsync(descriptor_) != 0) return failure("cannot be written to the disk");
  if (::rename(written_.c_str(), path_.c_str()) != 0) return failure("cannot take its name");
  ::close(std::exchange(descriptor_, -1));
  return {};
}

}  // namespace optima
