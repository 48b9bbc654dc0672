// The tokens that a file adds to its model's vocabulary, and finding them in a text.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/normalizers.h"
#include "tokenizer/hf/token_trie.h"
#include "tokenizer/tokenizer.h"

namespace optima::tokenizer::hf {

struct AddedToken {
  std::string content;
  std::string decoded;  // what it is to the decoder: the content, normalised if the flag says so
  int32_t id = -1;
  uint8_t single_word = 0, lstrip = 0, rstrip = 0, normalized = 0, special = 0;
};

// Immutable after creation; safe to use from any thread.
class AddedTokens {
 public:
  // `normalizer` may be null. New tokens are numbered as the tokenizers library numbers them.
  static Result<AddedTokens> create(const json::Value* list, const Model& model,
                                    const Normalizer* normalizer);

  // Of tokens that have their ids; none of them normalised.
  static Result<AddedTokens> of(std::vector<AddedToken> tokens);

  // A stretch of the text: one added token, or (id -1) what lies between two.
  struct Stretch {
    size_t begin, end;
    int32_t id;
  };
  // Which tokens are looked for: those of the text as it is, or those of the normalised text.
  enum class Stage : uint8_t { raw, normalized };
  std::vector<Stretch> split(std::string_view text, Stage stage, SpecialText special_text) const;

  const AddedToken* find(int32_t id) const;      // null = none
  int32_t find(std::string_view content) const;  // -1 = none
  bool is_special(std::string_view content) const;
  int32_t id_max() const { return id_max_; }  // -1 = no tokens
  const std::unordered_map<int32_t, AddedToken>& by_id() const { return by_id_; }

 private:
  struct Matcher {
    TokenTrie trie;
    std::vector<int32_t> ids;             // by pattern
    std::array<uint8_t, 256> first = {};  // bytes that patterns begin with
  };
  void insert(AddedToken token);
  void number(AddedToken token, const Model& model);
  Status build_matchers(const std::vector<AddedToken>& order);

  std::unordered_map<int32_t, AddedToken> by_id_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<std::string, uint8_t> specials_;
  Matcher raw_, normalized_;
  int32_t id_max_ = -1;
};

}  // namespace optima::tokenizer::hf
