// What SentencePiece's two kinds of model share: normalising a text, byte tokens, and the way back.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/charsmap.h"
#include "tokenizer/tokenizer_base.h"

namespace optima::tokenizer {

class SentencePieceBase : public TokenizerBase {
 public:
  Result<std::string> decode(std::span<const int32_t> ids, SpecialText special_text) const override;

 protected:
  explicit SentencePieceBase(const VocabularySpec& spec) : TokenizerBase(spec) {}

  // Files may leave out the ids of the well-known tokens.
  static VocabularySpec with_named_tokens(const VocabularySpec& file);
  // Scores, byte tokens, special tokens, and how texts are normalised.
  Status read_pieces(const VocabularySpec& spec);

  std::string normalize(std::string_view text) const;
  bool has_piece(int32_t id) const { return is_piece_[static_cast<size_t>(id)] != 0; }
  void append_text(int32_t id, std::string& out) const override;
  void append_symbol(int32_t id, std::string& out) const override { append_text(id, out); }
  // `first`: where the ids of this text begin.
  void append_bytes_or_unknown(std::string_view symbol, size_t first,
                               std::vector<int32_t>& ids) const;

  std::vector<double> scores_;     // the higher, the better
  std::vector<uint8_t> is_piece_;  // by id: whether texts are made of it
  SpecialMatcher symbols_;         // user-defined tokens inside of texts

 private:
  enum class SpacePrefix : uint8_t { none, add };
  enum class SpaceRuns : uint8_t { keep, collapse };
  Status read_piece(int32_t id);

  SpacePrefix space_prefix_ = SpacePrefix::none;
  SpaceRuns space_runs_ = SpaceRuns::keep;
  UserDefined user_defined_ = UserDefined::cut;
  std::optional<Charsmap> charsmap_;
  std::array<int32_t, 256> byte_ids_{};  // -1 = the vocabulary lacks this byte
};

}  // namespace optima::tokenizer
