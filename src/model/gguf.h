// GGUF files, versions 2 and 3, little-endian, single or split. Every offset, count and product is
// checked against the file's size before use; nothing in a file can cause more than an error.
// Format: the GGUF specification of the ggml project (docs/gguf.md).
#pragma once

#include "model/model_file.h"

namespace optima::model {

// Opens a file or, for a path that is part of a split set, all of its files.
Result<std::unique_ptr<ModelFile>> open_gguf(const Source& source, Allocator& allocator,
                                             const Progress& progress);

}  // namespace optima::model
