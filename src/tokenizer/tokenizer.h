// Text <-> token ids. A Tokenizer is immutable after creation and safe to use from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace optima::tokenizer {

enum class TokenKind : uint8_t {  // GGUF's tokenizer.ggml.token_type
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

// User-defined tokens in a text cut it into texts (added tokens, which GGUF files write so), or are
// pieces inside of it (SentencePiece's own).
enum class UserDefined : uint8_t { cut, inside };

// What a model file says about its vocabulary, as plain data. Views must outlive create() only:
// the tokenizer copies what it keeps.
struct VocabularySpec {
  // tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE), "t5" (Unigram),
  // "bert" (WordPiece), "gemma4" (BPE with byte tokens)
  std::string_view model;
  std::string_view pre;  // tokenizer.ggml.pre: "smollm", "llama-bpe", ...; may be empty
  std::span<const std::string_view> tokens;
  std::span<const double> scores;  // may be empty (byte-level BPE)
  std::span<const int64_t> kinds;  // TokenKind values; may be empty = all normal
  std::span<const std::string_view> merges;
  int32_t bos = -1, eos = -1, eot = -1, unknown = -1, pad = -1;  // -1 = none
  // -1 = the file does not say: the model's own default applies (llama: bos yes; gpt2: no, except
  // where the pre-tokeniser's family adds it).
  int add_bos = -1, add_eos = -1, add_space_prefix = -1;
  bool remove_extra_whitespaces = false;
  std::string_view charsmap = {};               // tokenizer.ggml.precompiled_charsmap; empty = none
  UserDefined user_defined = UserDefined::cut;  // "llama" and "t5"
  // tokenizer.ggml.normalizer.lowercase and .strip_accents ("bert"); -1 = the file does not say.
  int lowercase = -1, strip_accents = -1;
};

enum class Special : uint8_t { omit, add };  // BOS/EOS by the file's rule
enum class SpecialText : uint8_t {
  literal,
  parse
};  // "<|im_end|>" in the text: characters or token

class Tokenizer {
 public:
  // Fails with `unsupported` naming an unknown model or pre-tokeniser, with `format` for a
  // vocabulary that contradicts itself.
  static Result<std::unique_ptr<Tokenizer>> create(const VocabularySpec& spec);
  virtual ~Tokenizer() = default;

  // Total over all byte strings, valid UTF-8 or not. Linear-ish time.
  virtual Result<std::vector<int32_t>> encode(std::string_view text, Special special,
                                              SpecialText special_text) const = 0;

  // Appends the bytes of one token; control tokens append nothing unless SpecialText::parse
  // (then their name). An id outside the vocabulary is an error.
  virtual Status append_piece(int32_t id, SpecialText special_text, std::string& out) const = 0;
  // The bytes of a whole sequence; undoes what encode() did to leading spaces.
  virtual Result<std::string> decode(std::span<const int32_t> ids,
                                     SpecialText special_text) const = 0;

  int32_t size() const { return static_cast<int32_t>(kinds_.size()); }
  TokenKind kind(int32_t id) const { return kinds_[static_cast<size_t>(id)]; }
  // The token's text as the file has it; empty for an id out of range.
  virtual std::string_view token_text(int32_t id) const = 0;
  virtual int32_t find(std::string_view token_text) const = 0;  // -1 = absent
  int32_t bos() const { return bos_; }
  int32_t eos() const { return eos_; }
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }
  // Tokens that end an answer: eos, eot and the end-of-turn tokens known by name
  // (<|im_end|>, <|eot_id|>, <end_of_turn>, <|end|>, </s>, <|endoftext|>, ...).
  bool ends_generation(int32_t id) const { return ends_generation_[static_cast<size_t>(id)] != 0; }

 protected:
  std::vector<TokenKind> kinds_;
  std::vector<uint8_t> ends_generation_;
  int32_t bos_ = -1, eos_ = -1;
  bool adds_bos_ = false, adds_eos_ = false;
};

}  // namespace optima::tokenizer
