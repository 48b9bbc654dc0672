// The models of tokenizer.json: the ids of one piece of text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/viterbi.h"
#include "tokenizer/vocabulary.h"

namespace optima::tokenizer::hf {

// Memory of encode(), kept between the pieces of one text.
struct ModelScratch {
  MergeTable::Scratch merges;
  std::vector<ViterbiNode<double>> nodes;
  std::vector<int32_t> path;
  std::string text;
};

// Immutable after creation; safe to use from any thread.
class Model {
 public:
  virtual ~Model() = default;

  // Appends the ids of `piece`, which is not empty.
  virtual Status encode(std::string_view piece, ModelScratch& scratch,
                        std::vector<int32_t>& ids) const = 0;

  // Ids without a token have an empty text.
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Distinct tokens of the file; smaller than the vocabulary's size where ids are left out.
  int32_t token_count() const { return token_count_; }
  int32_t unknown() const { return unknown_; }  // -1 = none
  enum class Bytes : uint8_t { none, fall_back };
  Bytes bytes() const { return bytes_; }
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }  // with Bytes::fall_back only

  static Result<std::unique_ptr<Model>> create(const Component& component);

 protected:
  Model(Vocabulary vocabulary, int32_t token_count)
      : vocabulary_(std::move(vocabulary)), token_count_(token_count) {}

  // The ids of the tokens "<0x00>" to "<0xFF>", -1 where the vocabulary lacks one.
  void find_byte_tokens();
  // Appends the byte tokens of `text`; appends nothing and returns false if one is missing.
  bool append_byte_tokens(std::string_view text, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  int32_t token_count_;
  int32_t unknown_ = -1;
  Bytes bytes_ = Bytes::none;

 private:
  std::vector<int32_t> byte_ids_;
};

// Each reads its own members of "model".
Result<std::unique_ptr<Model>> create_bpe(const Component& component);
Result<std::unique_ptr<Model>> create_unigram(const Component& component);
Result<std::unique_ptr<Model>> create_word_piece(const Component& component);

// Reads the object "vocab" (token to id).
struct VocabularyEntries {
  std::vector<std::string_view> tokens;  // by id; empty where no token has that id
  std::vector<std::pair<std::string_view, int32_t>> aliases;  // further tokens of the same ids
  int32_t count = 0;
};
Result<VocabularyEntries> read_vocabulary(const Component& component);
Vocabulary make_vocabulary(const VocabularyEntries& entries);

// The same models from what other files say.
struct BpeParts {
  std::span<const std::string_view> tokens;  // by id
  std::span<const MergeTable::Pair> merges;
  std::string_view unknown;  // fused; empty = none
};
Result<std::unique_ptr<Model>> create_byte_fallback_bpe(const BpeParts& parts);
Result<std::unique_ptr<Model>> create_word_piece(std::span<const std::string_view> tokens,
                                                 std::string_view unknown);

}  // namespace optima::tokenizer::hf
