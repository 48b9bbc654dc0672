// A file, or a range of one, mapped read-only. Nothing is kept open: the mapping alone holds the
// file, so that a caller may close its descriptor at once. The file must not be shortened while
// it is mapped: the system answers a read past its new end with SIGBUS, which a library cannot
// take from its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace optima {

// Bytes of a file; offset need not be a multiple of anything.
struct FileRange {
  int64_t offset = 0;
  int64_t length = 0;  // 0 = to the end of the file
};

// Movable; view() stays valid across moves and until the last owner goes.
class MmapFile {
 public:
  // `path` is UTF-8. Failures: io (missing, no permission, not a regular file), format (empty),
  // invalid_argument (a range that the file does not have). Messages do not name the path.
  static Result<MmapFile> open(const std::string& path);
  static Result<MmapFile> map(int descriptor,
                              FileRange range);  // the descriptor stays the caller's

  MmapFile(MmapFile&& other) noexcept { swap(other); }
  MmapFile& operator=(MmapFile&& other) noexcept {
    MmapFile(std::move(other)).swap(*this);
    return *this;
  }
  ~MmapFile();

  std::span<const std::byte> view() const { return view_; }
  // Asks the system to read the range ahead; returns without waiting for the data.
  void prefetch() const;

 private:
  MmapFile() = default;
  void swap(MmapFile& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_bytes_, other.mapping_bytes_);
    std::swap(view_, other.view_);
  }

  void* mapping_ = nullptr;  // begins at a page boundary, at or before view_
  size_t mapping_bytes_ = 0;
  std::span<const std::byte> view_;
};

}  // namespace optima
