// What the kinds of tokenizers share: the vocabulary, the special tokens in a text, BOS and EOS.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pretokenizer_families.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace optima::tokenizer {

class TokenizerBase : public Tokenizer {
 public:
  Result<std::vector<int32_t>> encode(std::string_view text, Special special,
                                      SpecialText special_text) const final;
  Status append_piece(int32_t id, SpecialText special_text, std::string& out) const final;
  std::string_view token_text(int32_t id) const final;
  int32_t find(std::string_view token_text) const final { return vocabulary_.find(token_text); }

 protected:
  explicit TokenizerBase(const VocabularySpec& spec) : vocabulary_(spec.tokens) {}

  // Kinds, special ids, BOS and EOS rules; `bos_default` where the file does not say.
  Status read_spec(const VocabularySpec& spec, BosDefault bos_default);
  void add_special_token(int32_t id) { matcher_.add(vocabulary_.text(id), id, kind(id)); }

  // Appends the ids of a text without special tokens in it: what stands before, between or after
  // them, never empty.
  virtual Status encode_text(std::string_view text, std::vector<int32_t>& ids) const = 0;
  // Appends the bytes of a normal, unused or byte token.
  virtual void append_text(int32_t id, std::string& out) const = 0;
  // Appends the bytes of a user-defined token.
  virtual void append_symbol(int32_t id, std::string& out) const {
    out.append(vocabulary_.text(id));
  }

  Status check_id(int32_t id) const;

  Vocabulary vocabulary_;
  int32_t unknown_ = -1;

 private:
  Status read_kinds(const VocabularySpec& spec);
  Status read_special_ids(const VocabularySpec& spec);
  void find_generation_ends(const VocabularySpec& spec);

  SpecialMatcher matcher_;
};

}  // namespace optima::tokenizer
