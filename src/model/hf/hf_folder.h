// Hugging Face folders: config.json, *.safetensors (one, or shards with an index), tokenizer and
// template files. Weights of a folder on disk are mapped.
#pragma once

#include "model/hf/folder_files.h"
#include "model/model_file.h"

namespace optima::model {

Result<std::unique_ptr<ModelFile>> open_hf_folder(const FolderFiles& files, Allocator& allocator,
                                                  const OpenOptions& options);

}  // namespace optima::model
