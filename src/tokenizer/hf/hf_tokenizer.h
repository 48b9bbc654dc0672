// Added tokens, normaliser, pre-tokeniser, model, post-processor and decoder as one Tokenizer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/hf/added_tokens.h"
#include "tokenizer/hf/decoders.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/normalizers.h"
#include "tokenizer/hf/post_processor.h"
#include "tokenizer/hf/pre_tokenizers.h"
#include "tokenizer/hf/tokenizer_json.h"

namespace optima::tokenizer::hf {

struct Pipeline {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;
  AddedTokens added;
  Template frame;
};

class HfTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Pipeline pipeline,
                                                   const HfTokenizerConfig& config);

  Result<std::vector<int32_t>> encode(std::string_view text, Special special,
                                      SpecialText special_text) const override;
  Status append_piece(int32_t id, SpecialText special_text, std::string& out) const override;
  Result<std::string> decode(std::span<const int32_t> ids, SpecialText special_text) const override;
  std::string_view token_text(int32_t id) const override;
  int32_t find(std::string_view token_text) const override;

 private:
  explicit HfTokenizer(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}
  void read_kinds();
  Status read_config(const HfTokenizerConfig& config);
  Result<int32_t> named_id(std::string_view name, std::string_view text, int32_t id) const;
  Status check_id(int32_t id) const;

  struct Scratch;
  Status encode_raw(NormalizedText text, SpecialText special_text, Scratch& scratch,
                    std::vector<int32_t>& ids) const;
  Status encode_piece(Pieces pieces, Scratch& scratch, std::vector<int32_t>& ids) const;
  // The token as decoding starts from it; nullopt = it is left out.
  std::optional<std::string> token_to_decode(int32_t id, SpecialText special_text) const;

  Pipeline pipeline_;
};

}  // namespace optima::tokenizer::hf
