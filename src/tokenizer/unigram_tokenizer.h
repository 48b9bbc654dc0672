// SentencePiece's Unigram (tokenizer.ggml.model "t5").
#pragma once

#include <memory>

#include "tokenizer/hf/token_trie.h"
#include "tokenizer/sentencepiece_base.h"

namespace optima::tokenizer {

class UnigramTokenizer final : public SentencePieceBase {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(const VocabularySpec& spec);

 private:
  explicit UnigramTokenizer(const VocabularySpec& spec) : SentencePieceBase(spec) {}
  Status encode_text(std::string_view text, std::vector<int32_t>& ids) const override;

  // How good a path is that goes on from `score` with this piece of so many bytes.
  float score_with(float score, int32_t id, size_t bytes) const;

  hf::TokenTrie trie_;
  float unknown_score_ = 0;
};

}  // namespace optima::tokenizer
