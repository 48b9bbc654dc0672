// See folder_files.h.
#include "model/hf/folder_files.h"

#include <filesystem>
#include <map>

#include "base/text.h"
#include "model/model_file.h"

namespace optima::model {
namespace {

std::string last_part(const std::string& path) {
  std::filesystem::path parts(path);
  if (parts.filename().empty()) parts = parts.parent_path();
  return parts.filename().string();
}

class DiskFiles final : public FolderFiles {
 public:
  explicit DiskFiles(const std::string& path) : FolderFiles(path, last_part(path)) {}

  bool has(std::string_view name) const override {
    std::error_code failure;
    return std::filesystem::exists(in_folder(name), failure);
  }
  Result<std::unique_ptr<Bytes>> open(std::string_view name, Allocator& allocator,
                                      const Progress& progress) const override {
    return open_bytes(PathSource{in_folder(name)}, allocator, progress);
  }

 private:
  std::string in_folder(std::string_view name) const { return place() + "/" + std::string(name); }
};

class HostFiles final : public FolderFiles {
 public:
  explicit HostFiles(const FolderSource& source) : FolderFiles("folder", ""), source_(source) {}

  Status add_all() {
    for (size_t i = 0; i < source_.files.size(); ++i) {
      const std::string& name = source_.files[i].name;
      if (name.empty()) return Status(Code::invalid_argument, text("file ", i, " has no name"));
      if (!index_.emplace(name, i).second)
        return Status(Code::invalid_argument, text("two files are named ", in_quotes(name)));
    }
    return {};
  }
  bool has(std::string_view name) const override { return index_.find(name) != index_.end(); }
  Result<std::unique_ptr<Bytes>> open(std::string_view name, Allocator& allocator,
                                      const Progress& progress) const override {
    const auto found = index_.find(name);
    if (found == index_.end())
      return Status(Code::io, text("no file ", in_quotes(name), " in the folder"));
    CallbackSource file;
    file.length = source_.files[found->second].length;
    file.read = [this, i = found->second](void* into, int64_t offset, int64_t bytes) {
      return source_.read(i, into, offset, bytes);
    };
    Result<std::unique_ptr<Bytes>> bytes = open_bytes(file, allocator, progress);
    if (!bytes.ok()) return bytes.take_status().in(std::string(name));
    return bytes;
  }

 private:
  const FolderSource& source_;
  std::map<std::string_view, size_t> index_;
};

}  // namespace

std::unique_ptr<FolderFiles> files_on_disk(const std::string& path) {
  return std::make_unique<DiskFiles>(path);
}

Result<std::unique_ptr<FolderFiles>> files_of_host(const FolderSource& source) {
  if (!source.read) return Status(Code::invalid_argument, "folder: no read function");
  auto files = std::make_unique<HostFiles>(source);
  OPTIMA_TRY(files->add_all());
  return std::unique_ptr<FolderFiles>(std::move(files));
}

}  // namespace optima::model
