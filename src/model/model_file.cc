// Finds tensors by name, and documents, whatever the format was; see model_file.h.
#include "model/model_file.h"

#include <filesystem>

#include "base/text.h"
#include "model/gguf.h"
#include "model/hf/hf_folder.h"

namespace optima::model {

Result<std::unique_ptr<ModelFile>> ModelFile::create(ModelFileParts parts) {
  auto file = std::make_unique<ModelFile>();
  file->parts_ = std::move(parts);
  const std::vector<Tensor>& tensors = file->parts_.tensors;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!file->tensor_index_.emplace(tensors[i].name, i).second)
      return Status(Code::format,
                    text(file->name(), ": two tensors are named ", in_quotes(tensors[i].name)));
  for (const auto& bytes : file->parts_.files)
    file->file_bytes_ += static_cast<int64_t>(bytes->view().size());
  return file;
}

const Tensor* ModelFile::find(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &parts_.tensors[found->second];
}

std::optional<std::string_view> ModelFile::document(std::string_view name) const {
  const auto found = parts_.documents.find(name);
  if (found == parts_.documents.end()) return std::nullopt;
  return found->second;
}

void ModelFile::prefetch() const {
  for (const std::unique_ptr<Bytes>& file : parts_.files) file->prefetch();
}

std::string in_quotes(std::string_view name) {
  constexpr size_t kShownMax = 96;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : name.substr(0, kShownMax)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out + (name.size() > kShownMax ? "...'" : "'");
}

Result<std::unique_ptr<ModelFile>> open_model_file(const Source& source, Allocator& allocator,
                                                   const OpenOptions& options) {
  if (const auto* path = std::get_if<PathSource>(&source)) {
    std::error_code failure;
    if (std::filesystem::is_directory(path->path, failure))
      return open_hf_folder(*files_on_disk(path->path), allocator, options);
  }
  if (const auto* folder = std::get_if<FolderSource>(&source)) {
    OPTIMA_ASSIGN(const auto files, files_of_host(*folder));
    return open_hf_folder(*files, allocator, options);
  }
  return open_gguf(source, allocator, options.progress);
}

}  // namespace optima::model
