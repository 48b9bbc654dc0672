// Reads the file's components in the order in which they depend on each other.
#include "tokenizer/hf/tokenizer_json.h"

#include "base/json.h"
#include "base/text.h"
#include "tokenizer/hf/hf_tokenizer.h"

namespace optima::tokenizer {

Result<std::unique_ptr<Tokenizer>> load_tokenizer_json(std::string_view tokenizer_json,
                                                       const HfTokenizerConfig& config) {
  using namespace hf;
  Result<json::Value> parsed = json::parse(tokenizer_json);
  if (!parsed.ok()) {
    return Status(Code::format, text("tokenizer.json: ", parsed.status().message()));
  }
  OPTIMA_ASSIGN(const Component root, Component::of(*parsed, "the file"));
  Pipeline pipeline;
  if (root.find("normalizer") != nullptr) {
    OPTIMA_ASSIGN(const Component component, Component::of(*root.find("normalizer"), "normalizer"));
    OPTIMA_ASSIGN(pipeline.normalizer, Normalizer::create(component));
  }
  if (root.find("pre_tokenizer") != nullptr) {
    OPTIMA_ASSIGN(const Component component,
                  Component::of(*root.find("pre_tokenizer"), "pre_tokenizer"));
    OPTIMA_ASSIGN(pipeline.pre_tokenizer, PreTokenizer::create(component));
  }
  if (root.find("model") == nullptr) return root.wrong("model", "object");
  OPTIMA_ASSIGN(const Component model, Component::of(*root.find("model"), "model"));
  OPTIMA_ASSIGN(pipeline.model, Model::create(model));
  OPTIMA_ASSIGN(pipeline.frame, read_post_processor(root.find("post_processor")));
  OPTIMA_ASSIGN(pipeline.decoder, Decoder::create(root.find("decoder")));
  OPTIMA_ASSIGN(pipeline.added, AddedTokens::create(root.find("added_tokens"), *pipeline.model,
                                                    pipeline.normalizer.get()));
  return HfTokenizer::create(std::move(pipeline), config);
}

}  // namespace optima::tokenizer
