// Translates metadata keys into a VocabularySpec, so that the tokenizer knows no file format.
#include "engine/vocabulary.h"

#include "base/text.h"

namespace optima::engine {
namespace {

Result<int32_t> token_id(const model::Metadata& metadata, std::string_view key) {
  OPTIMA_ASSIGN(const std::optional<int64_t> value, metadata.integer(key));
  if (!value) return -1;
  if (*value < 0 || *value > INT32_MAX)
    return Status(Code::format, text("metadata key '", key, "' is ", *value, ", no token id"));
  return static_cast<int32_t>(*value);
}

Result<int> flag(const model::Metadata& metadata, std::string_view key) {
  OPTIMA_ASSIGN(const std::optional<bool> value, metadata.boolean(key));
  return value ? (*value ? 1 : 0) : -1;
}

template <typename T>
std::span<const T> view(const std::vector<T>* list) {
  return list != nullptr ? std::span<const T>(*list) : std::span<const T>();
}

}  // namespace

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const model::Metadata& metadata) {
  tokenizer::VocabularySpec spec;
  OPTIMA_ASSIGN(const auto kind, metadata.string("tokenizer.ggml.model"));
  if (!kind) return Status(Code::format, "metadata key 'tokenizer.ggml.model' is missing");
  spec.model = *kind;
  OPTIMA_ASSIGN(const auto pre, metadata.string("tokenizer.ggml.pre"));
  spec.pre = pre.value_or("");
  OPTIMA_ASSIGN(const auto* tokens, metadata.strings("tokenizer.ggml.tokens"));
  if (tokens == nullptr || tokens->empty())
    return Status(Code::format, "metadata key 'tokenizer.ggml.tokens' is missing or empty");
  spec.tokens = view(tokens);
  OPTIMA_ASSIGN(const auto* scores, metadata.reals("tokenizer.ggml.scores"));
  spec.scores = view(scores);
  OPTIMA_ASSIGN(const auto* kinds, metadata.integers("tokenizer.ggml.token_type"));
  spec.kinds = view(kinds);
  OPTIMA_ASSIGN(const auto* merges, metadata.strings("tokenizer.ggml.merges"));
  spec.merges = view(merges);
  OPTIMA_ASSIGN(spec.bos, token_id(metadata, "tokenizer.ggml.bos_token_id"));
  OPTIMA_ASSIGN(spec.eos, token_id(metadata, "tokenizer.ggml.eos_token_id"));
  OPTIMA_ASSIGN(spec.eot, token_id(metadata, "tokenizer.ggml.eot_token_id"));
  OPTIMA_ASSIGN(spec.unknown, token_id(metadata, "tokenizer.ggml.unknown_token_id"));
  OPTIMA_ASSIGN(spec.pad, token_id(metadata, "tokenizer.ggml.padding_token_id"));
  OPTIMA_ASSIGN(spec.add_bos, flag(metadata, "tokenizer.ggml.add_bos_token"));
  OPTIMA_ASSIGN(spec.add_eos, flag(metadata, "tokenizer.ggml.add_eos_token"));
  OPTIMA_ASSIGN(spec.add_space_prefix, flag(metadata, "tokenizer.ggml.add_space_prefix"));
  OPTIMA_ASSIGN(const int remove, flag(metadata, "tokenizer.ggml.remove_extra_whitespaces"));
  spec.remove_extra_whitespaces = remove == 1;
  return tokenizer::Tokenizer::create(spec);
}

}  // namespace optima::engine
