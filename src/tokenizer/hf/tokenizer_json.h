// A Hugging Face tokenizer.json as a Tokenizer. For the caller: read tokenizer.json into memory,
// fill HfTokenizerConfig from tokenizer_config.json and generation_config.json, and call
// load_tokenizer_json(); neither needs to outlive the call.
//
// Special::add applies the file's post-processor, Special::omit does not. "truncation" and
// "padding" are the business of whoever makes batches and are not read. Bytes of a text that are
// no UTF-8 are kept: byte-level and byte-fallback vocabularies have tokens for them, to others they
// are unknown characters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

// What stands beside tokenizer.json in a model folder, as plain data.
struct HfTokenizerConfig {
  // tokenizer_config.json "bos_token" and "eos_token" (text, or "content" of an object); empty =
  // none. A text that is no token of the vocabulary is an error.
  std::string_view bos_token = {}, eos_token = {};
  int32_t bos = -1, eos = -1;  // ids where they are known instead; they win over the texts
  std::span<const int32_t> end_ids =
      {};  // further tokens that end an answer (generation_config.json)
  // "add_bos_token" and "add_eos_token": 1 = add where the post-processor does not, 0 = take away
  // where it does, -1 = as the post-processor has it.
  int add_bos = -1, add_eos = -1;
};

// Fails with `format` for a file that contradicts itself, with `unsupported` naming a component or
// option that is not known and where it stands.
Result<std::unique_ptr<Tokenizer>> load_tokenizer_json(std::string_view tokenizer_json,
                                                       const HfTokenizerConfig& config);

}  // namespace optima::tokenizer
