// tiktoken's vocabularies as a Tokenizer: rank files (a line "base64 rank" a token) and Mistral's
// Tekken files. For the caller: pass the file's bytes; a rank file says nothing of the pattern and
// the special tokens, which come from a known family or as data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/hf/tokenizer_json.h"
#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

struct TiktokenSpecial {
  std::string text;
  int32_t id;
};

struct TiktokenSpec {
  std::string_view pattern;  // in the syntax of tiktoken
  std::span<const TiktokenSpecial> specials;
  bool nfc = false;  // whether texts are normalised first
};

// `config`: as for load_tokenizer_json(); without add_bos and add_eos nothing is added.
Result<std::unique_ptr<Tokenizer>> load_tiktoken(std::string_view ranks, const TiktokenSpec& spec,
                                                 const HfTokenizerConfig& config);

// `family`: llama3, llama4, qwen (1 to 3) or qwen3.5. No specials: those of the family, numbered
// after the ranks; what `config` leaves empty or at -1 is the family's too.
Result<std::unique_ptr<Tokenizer>> load_tiktoken(std::string_view ranks, std::string_view family,
                                                 std::span<const TiktokenSpecial> specials = {},
                                                 HfTokenizerConfig config = {});

// Mistral's tekken.json; <s> and </s> are BOS and EOS, and BOS is added, where `config` says no
// other.
Result<std::unique_ptr<Tokenizer>> load_tekken(std::string_view tekken_json,
                                               HfTokenizerConfig config = {});

// Whether a tokenizer.model is a rank file: its first line is a token in base64 and a number.
bool is_rank_file(std::string_view bytes);

}  // namespace optima::tokenizer
