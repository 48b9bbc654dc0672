// The files of a folder by their names, wherever they are: on disk, or behind the host's callbacks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/allocator.h"
#include "base/status.h"
#include "model/source.h"

namespace optima::model {

class FolderFiles {
 public:
  virtual ~FolderFiles() = default;
  virtual bool has(std::string_view name) const = 0;
  // As open_bytes. A file that is not there is an error.
  virtual Result<std::unique_ptr<Bytes>> open(std::string_view name, Allocator& allocator,
                                              const Progress& progress) const = 0;
  // For messages: the path; of a host's folder "folder".
  const std::string& place() const { return place_; }
  // What the folder is called; empty for a host's.
  const std::string& name() const { return name_; }

 protected:
  FolderFiles(std::string place, std::string name)
      : place_(std::move(place)), name_(std::move(name)) {}

 private:
  std::string place_;
  std::string name_;
};

// Files are mapped.
std::unique_ptr<FolderFiles> files_on_disk(const std::string& path);
// Files are read into memory when they are opened, on the thread that opens. `source` must outlive
// the object. invalid_argument for a name that is empty or given twice.
Result<std::unique_ptr<FolderFiles>> files_of_host(const FolderSource& source);

}  // namespace optima::model
