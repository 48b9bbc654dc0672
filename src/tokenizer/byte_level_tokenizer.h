// Byte-level BPE (tokenizer.ggml.model "gpt2").
#pragma once

#include <array>
#include <memory>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/tokenizer_base.h"

namespace optima::tokenizer {

class ByteLevelTokenizer final : public TokenizerBase {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(const VocabularySpec& spec);

  Result<std::string> decode(std::span<const int32_t> ids, SpecialText special_text) const override;

 private:
  ByteLevelTokenizer(const VocabularySpec& spec, const PretokenizerFamily& family)
      : TokenizerBase(spec), family_(&family) {}
  Status encode_text(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_text(int32_t id, std::string& out) const override;
  int32_t find_whole(std::string_view piece, std::string& characters) const;

  ByteAlphabet alphabet_;
  const PretokenizerFamily* family_;  // a row of a constant table
  std::unique_ptr<Pretokenizer> pretokenizer_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_{};  // -1 = the vocabulary lacks this byte
};

}  // namespace optima::tokenizer
