// Where the bytes of a model come from: a path (memory-mapped), a descriptor with offset and
// length (memory-mapped), the host's memory, or the host's read callbacks (read into memory), of
// one file or of the files of a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"

namespace optima::model {

struct PathSource {
  std::string path;  // UTF-8. A file; for splits, any file of the set named -%05d-of-%05d.gguf
};
struct DescriptorSource {
  int descriptor = -1;  // Read while opening only; it stays the caller's, who may close it then.
  int64_t offset = 0;
  int64_t length = 0;  // 0 = to the end of the file
};
struct MemorySource {
  const std::byte* data = nullptr;  // Must stay valid and unchanged while the model lives.
  int64_t length = 0;
};
struct CallbackSource {
  int64_t length = 0;
  // Reads exactly `bytes` at `offset`; false = I/O error. Called on the loading thread only.
  std::function<bool(void* into, int64_t offset, int64_t bytes)> read;
};
struct FolderSource {
  struct File {
    std::string name;  // within the folder, such as "config.json"
    int64_t length = 0;
  };
  std::vector<File> files;
  // As CallbackSource.read, of the file with this index.
  std::function<bool(size_t file, void* into, int64_t offset, int64_t bytes)> read;
};
using Source =
    std::variant<PathSource, DescriptorSource, MemorySource, CallbackSource, FolderSource>;

// Fraction done in [0, 1]; returning false cancels the load (Code::cancelled).
using Progress = std::function<bool(float fraction)>;

// One file's bytes, readable for as long as the object lives.
class Bytes {
 public:
  virtual ~Bytes() = default;
  std::span<const std::byte> view() const { return view_; }
  const std::string& name() const { return name_; }  // for messages: the path, or the kind
  // Asks the system to read mapped bytes ahead, without waiting; nothing for the other kinds.
  virtual void prefetch() const {}

 protected:
  std::span<const std::byte> view_;
  std::string name_;
};

// Progress is called with 0 first and 1 last; between them only while callbacks are read. Not for
// folders (model/hf/folder_files.h).
Result<std::unique_ptr<Bytes>> open_bytes(const Source& source, Allocator& allocator,
                                          const Progress& progress);

}  // namespace optima::model
