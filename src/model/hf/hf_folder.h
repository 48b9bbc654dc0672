// Hugging Face folders: config.json, *.safetensors (one, or shards with an index), tokenizer and
// template files. Weights are mapped.
#pragma once

#include <string>

#include "model/model_file.h"

namespace optima::model {

Result<std::unique_ptr<ModelFile>> open_hf_folder(const std::string& path, Allocator& allocator,
                                                  const OpenOptions& options);

}  // namespace optima::model
