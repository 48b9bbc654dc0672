// See io.h.
#include "abi/io.h"

#include "abi/guard.h"
#include "abi/structs.h"

namespace optima::abi {

Result<model::CallbackSource> read_io(const optima_io* in, ReleaseOnce& hook) {
  if (in == nullptr) return Status(Code::invalid_argument, "io: NULL");
  const auto given = given_fields(in);
  hook = ReleaseOnce(given.release, given.user);
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

Result<model::FolderSource> read_folder(const optima_folder* in, ReleaseOnce& hook) {
  if (in == nullptr) return Status(Code::invalid_argument, "folder: NULL");
  const auto given = given_fields(in);
  hook = ReleaseOnce(given.release, given.user);
  OPTIMA_ASSIGN(const optima_folder folder, read_struct("folder", in));
  if (folder.read == nullptr) return Status(Code::invalid_argument, "folder.read: NULL");
  OPTIMA_TRY(check_array("folder.names", folder.names, folder.file_count, sizeof(char*)));
  OPTIMA_TRY(check_array("folder.lengths", folder.lengths, folder.file_count, sizeof(int64_t)));
  model::FolderSource source;
  source.files.reserve(folder.file_count);
  for (size_t i = 0; i < folder.file_count; ++i) {
    if (folder.names[i] == nullptr)
      return Status(Code::invalid_argument, text("folder.names[", i, "]: NULL"));
    if (folder.lengths[i] < 0) {
      return Status(Code::invalid_argument, text("folder.lengths[", i, "] is ", folder.lengths[i],
                                                 ", must not be negative"));
    }
    source.files.push_back({folder.names[i], folder.lengths[i]});
  }
  source.read = [folder](size_t file, void* into, int64_t offset, int64_t bytes) {
    int32_t failed = 1;
    contain([&] { failed = folder.read(folder.user, file, into, offset, bytes); });
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
