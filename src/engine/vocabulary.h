// The tokenizer of a GGUF file, from its tokenizer.ggml.* metadata.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model_file.h"
#include "tokenizer/tokenizer.h"

namespace optima::engine {

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const model::ModelFile& file);

}  // namespace optima::engine
