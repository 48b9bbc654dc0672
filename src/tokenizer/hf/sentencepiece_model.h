// A SentencePiece tokenizer.model as a Tokenizer. For the caller: pass the file's bytes; they need
// not outlive the call. Control pieces in a text count as such with SpecialText::parse, as in the
// tokenizers library; sentencepiece itself never looks for them.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

struct SentencePieceConfig {
  int add_bos = -1, add_eos = -1;  // tokenizer_config.json; -1 = BOS for BPE, EOS for neither
};

// Models of type BPE and Unigram; other types and options that change ids are `unsupported`.
Result<std::unique_ptr<Tokenizer>> load_sentencepiece_model(std::string_view bytes,
                                                            const SentencePieceConfig& config);

}  // namespace optima::tokenizer
