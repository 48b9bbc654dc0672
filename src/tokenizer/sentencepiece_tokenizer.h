// SentencePiece-style BPE by scores (tokenizer.ggml.model "llama").
#pragma once

#include <memory>

#include "tokenizer/sentencepiece_base.h"

namespace optima::tokenizer {

class SentencePieceTokenizer final : public SentencePieceBase {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(const VocabularySpec& spec);

 private:
  class Merger;

  explicit SentencePieceTokenizer(const VocabularySpec& spec) : SentencePieceBase(spec) {}
  Status encode_text(std::string_view text, std::vector<int32_t>& ids) const override;
  int32_t find_piece(std::string_view text) const;  // -1 = no piece that merging may make
};

}  // namespace optima::tokenizer
