// SentencePiece-style BPE by scores (tokenizer.ggml.model "llama").
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_base.h"

namespace optima::tokenizer {

class SentencePieceTokenizer final : public TokenizerBase {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(const VocabularySpec& spec);

  Result<std::string> decode(std::span<const int32_t> ids, SpecialText special_text) const override;

 private:
  enum class SpacePrefix : uint8_t { none, add };
  enum class SpaceRuns : uint8_t { keep, collapse };
  class Merger;

  explicit SentencePieceTokenizer(const VocabularySpec& spec) : TokenizerBase(spec) {}
  Status read_pieces(const VocabularySpec& spec);
  Status read_piece(int32_t id);
  Status encode_text(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_text(int32_t id, std::string& out) const override;
  std::string normalize(std::string_view text) const;
  int32_t find_piece(std::string_view text) const;  // -1 = no piece that merging may make
  // `first`: where the ids of this text begin.
  void append_bytes_or_unknown(std::string_view symbol, size_t first,
                               std::vector<int32_t>& ids) const;

  SpacePrefix space_prefix_ = SpacePrefix::none;
  SpaceRuns space_runs_ = SpaceRuns::keep;
  std::vector<double> scores_;           // the higher merges first
  std::vector<uint8_t> mergeable_;       // by id
  std::array<int32_t, 256> byte_ids_{};  // -1 = the vocabulary lacks this byte
};

}  // namespace optima::tokenizer
