// Chooses the tokenizer that a file names. A model of a new kind is one row here and one class
// beside sentencepiece_tokenizer.cc.
#include "tokenizer/tokenizer.h"

#include <limits>

#include "base/text.h"
#include "tokenizer/byte_level_tokenizer.h"
#include "tokenizer/hf/gguf_pipelines.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/unigram_tokenizer.h"

namespace optima::tokenizer {
namespace {

struct ModelRow {
  std::string_view name;
  Result<std::unique_ptr<Tokenizer>> (*create)(const VocabularySpec& spec);
};
constexpr ModelRow kModels[] = {
    {"gpt2", ByteLevelTokenizer::create}, {"llama", SentencePieceTokenizer::create},
    {"t5", UnigramTokenizer::create},     {"bert", hf::create_gguf_bert},
    {"gemma4", hf::create_gguf_gemma4},
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const VocabularySpec& spec) {
  if (spec.tokens.empty()) return Status(Code::format, "vocabulary: no tokens");
  constexpr size_t kTokensMax = std::numeric_limits<int32_t>::max() / 2;
  if (spec.tokens.size() > kTokensMax) {
    return Status(Code::format,
                  text("vocabulary: ", spec.tokens.size(), " tokens; at most ", kTokensMax));
  }
  for (const ModelRow& row : kModels) {
    if (row.name == spec.model) return row.create(spec);
  }
  return Status(Code::unsupported, text("tokenizer model '", spec.model,
                                        "' is not known; known are gpt2, llama, t5, bert, gemma4"));
}

}  // namespace optima::tokenizer
