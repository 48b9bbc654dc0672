// See io.h.
#include "abi/io.h"

#include "abi/guard.h"
#include "abi/structs.h"

namespace optima::abi {

Result<model::CallbackSource> read_io(const optima_io* in, ReleaseOnce& hook) {
  if (in == nullptr) return Status(Code::invalid_argument, "io: NULL");
  if (readable(in)) hook = ReleaseOnce(in->release, in->user);
  OPTIMA_ASSIGN(const optima_io io, read_struct("io", in));
  if (io.read == nullptr) return Status(Code::invalid_argument, "io.read: NULL");
  if (io.length < 0) {
    return Status(Code::invalid_argument,
                  text("io.length is ", io.length, ", must not be negative"));
  }
  model::CallbackSource source;
  source.length = io.length;
  source.read = [io](void* into, int64_t offset, int64_t bytes) {
    int32_t failed = 1;
    contain([&] { failed = io.read(io.user, into, offset, bytes); });
    return failed == 0;
  };
  return source;
}

Result<std::string> read_path(const char* path, size_t path_bytes) {
  OPTIMA_ASSIGN(const std::string_view name, read_text("path", path, path_bytes));
  if (name.empty()) return Status(Code::invalid_argument, "path: empty");
  if (name.find('\0') != std::string_view::npos) {
    return Status(Code::invalid_argument, "path: contains a NUL byte");
  }
  return std::string(name);
}

}  // namespace optima::abi
