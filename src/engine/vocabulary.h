// The tokenizer of a GGUF file, from its tokenizer.ggml.* metadata.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model_file.h"
#include "tokenizer/tokenizer.h"

namespace optima::engine {

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const model::ModelFile& file);

// Of all tokens' texts and kinds, in order. XXH3-64.
uint64_t vocabulary_fingerprint(const tokenizer::Tokenizer& tokenizer);

}  // namespace optima::engine
