// Tokenizers that GGUF files describe by name only and that tokenizer.json describes in parts.
#pragma once

#include <memory>

#include "tokenizer/tokenizer.h"

namespace optima::tokenizer::hf {

Result<std::unique_ptr<Tokenizer>> create_gguf_bert(const VocabularySpec& spec);
Result<std::unique_ptr<Tokenizer>> create_gguf_gemma4(const VocabularySpec& spec);

}  // namespace optima::tokenizer::hf
