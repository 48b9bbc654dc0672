// One GGUF file as it stands, before the files of a split set are put together (gguf.cc).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/model_file.h"

namespace optima::model {

struct GgufPart {
  Metadata metadata;
  std::vector<Tensor> tensors;  // in the file's order; names are unique, ranges do not overlap
};

// Views in the result point into `file`. Errors name the byte, key or tensor, not the file.
Result<GgufPart> parse_gguf_part(std::span<const std::byte> file);

}  // namespace optima::model
