// A file that appears complete under its name, or not at all.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace optima {

// Written beside its place under another name; keep() gives it the name, replacing what is there.
// Without keep() nothing is left. Errors are `io`, with the path and the system's reason.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  Status write(const void* from, int64_t bytes);
  Status keep();  // the bytes have reached the disk

 private:
  NewFile(std::string path, std::string written, int descriptor)
      : path_(std::move(path)), written_(std::move(written)), descriptor_(descriptor) {}
  Status failure(const char* what) const;

  std::string path_, written_;
  int descriptor_;
};

}  // namespace optima
