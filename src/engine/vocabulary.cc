// Metadata keys -> VocabularySpec, and a folder's JSON files -> HfTokenizerConfig, so that the
// tokenizer knows nothing of files.
#include "engine/vocabulary.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

#include "base/json.h"
#include "base/text.h"
#include "tokenizer/hf/sentencepiece_model.h"
#include "tokenizer/hf/tiktoken.h"
#include "tokenizer/hf/tokenizer_json.h"

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

// A document of the folder; an empty object where it is absent.
Result<json::Value> parse_document(const model::ModelFile& file, std::string_view name) {
  const std::optional<std::string_view> document = file.document(name);
  if (!document) return json::Value(json::Object{});
  Result<json::Value> value = json::parse(*document);
  if (!value.ok()) return Status(Code::format, text(name, ": ", value.status().message()));
  return value;
}

// A special token of tokenizer_config.json: a text, or an object that holds it.
std::string_view token_text(const json::Value& config, std::string_view key) {
  const json::Value* value = config.find(key);
  if (value != nullptr && value->object() != nullptr) value = value->find("content");
  if (value == nullptr || value->string() == nullptr) return {};
  return *value->string();
}

int flag(const json::Value& config, std::string_view key) {
  const json::Value* value = config.find(key);
  return value == nullptr || value->boolean() == nullptr ? -1 : *value->boolean() ? 1 : 0;
}

// "eos_token_id": a number or a list of them.
void append_ids(const json::Value& config, std::vector<int32_t>& ids) {
  const json::Value* value = config.find("eos_token_id");
  const auto append = [&](const json::Value& item) {
    const int64_t* id = item.integer();
    if (id != nullptr && *id >= 0 && *id <= INT32_MAX) ids.push_back(static_cast<int32_t>(*id));
  };
  if (value == nullptr) return;
  append(*value);
  if (value->array() != nullptr)
    for (const json::Value& item : *value->array()) append(item);
}

// What stands beside a folder's vocabulary; the texts are in the documents that it holds.
struct FolderSettings {
  json::Value config;  // tokenizer_config.json
  std::vector<int32_t> end_ids;

  tokenizer::HfTokenizerConfig view() const {
    tokenizer::HfTokenizerConfig out;
    out.bos_token = token_text(config, "bos_token");
    out.eos_token = token_text(config, "eos_token");
    out.end_ids = end_ids;
    out.add_bos = flag(config, "add_bos_token");
    out.add_eos = flag(config, "add_eos_token");
    return out;
  }
};

// Rank files say nothing of the pattern that cuts texts: it is that of the model's family.
Result<std::string_view> rank_family(const json::Value& model_config) {
  struct Row {
    std::string_view model_type, family;
  };
  constexpr Row kRows[] = {
      {"llama", "llama3"}, {"qwen2", "qwen"}, {"qwen3", "qwen"}, {"qwen3_moe", "qwen"}};
  const json::Value* type = model_config.find("model_type");
  const std::string name = type != nullptr && type->string() != nullptr ? *type->string() : "";
  for (const Row& row : kRows)
    if (row.model_type == name) return row.family;
  return Status(Code::unsupported,
                text("a tokenizer.model of ranks is known for llama, qwen2, qwen3 and qwen3_moe, "
                     "not for model_type '",
                     name, "'"));
}

// "added_tokens_decoder" of tokenizer_config.json: {"128000": {"content": "<|begin_of_text|>"}}.
Result<std::vector<tokenizer::TiktokenSpecial>> listed_specials(const json::Value& config) {
  std::vector<tokenizer::TiktokenSpecial> out;
  const json::Value* list = config.find("added_tokens_decoder");
  if (list == nullptr || list->object() == nullptr) return out;
  for (const json::Member& member : *list->object()) {
    const json::Value* content = member.value.find("content");
    int32_t id = -1;
    const char* const end = member.key.data() + member.key.size();
    const auto [stop, failure] = std::from_chars(member.key.data(), end, id);
    if (failure != std::errc() || stop != end || id < 0 || content == nullptr ||
        content->string() == nullptr)
      return Status(Code::format, text("tokenizer_config.json: added_tokens_decoder: '", member.key,
                                       "' is no id with a content"));
    out.push_back({*content->string(), id});
  }
  return out;
}

// Folders without tokenizer.json: a Tekken file, ranks, or a SentencePiece model.
Result<std::unique_ptr<tokenizer::Tokenizer>> load_older_form(const model::ModelFile& file,
                                                              const FolderSettings& settings,
                                                              const json::Value& model_config) {
  if (const auto tekken = file.document("tekken.json"))
    return tokenizer::load_tekken(*tekken, settings.view());
  const std::optional<std::string_view> model = file.document("tokenizer.model");
  if (!model)
    return Status(Code::unsupported,
                  "the folder holds neither tokenizer.json nor tekken.json nor tokenizer.model");
  if (tokenizer::is_rank_file(*model)) {
    OPTIMA_ASSIGN(const std::string_view family, rank_family(model_config));
    OPTIMA_ASSIGN(const auto specials, listed_specials(settings.config));
    return tokenizer::load_tiktoken(*model, family, specials, settings.view());
  }
  Result<std::unique_ptr<tokenizer::Tokenizer>> tokenizer = tokenizer::load_sentencepiece_model(
      *model, {flag(settings.config, "add_bos_token"), flag(settings.config, "add_eos_token")});
  if (!tokenizer.ok()) return tokenizer.take_status().in("tokenizer.model");
  return tokenizer;
}

Result<std::unique_ptr<tokenizer::Tokenizer>> load_hf_tokenizer(const model::ModelFile& file) {
  FolderSettings settings;
  OPTIMA_ASSIGN(settings.config, parse_document(file, "tokenizer_config.json"));
  OPTIMA_ASSIGN(const json::Value generation, parse_document(file, "generation_config.json"));
  OPTIMA_ASSIGN(const json::Value model_config, parse_document(file, "config.json"));
  append_ids(generation, settings.end_ids);
  append_ids(model_config, settings.end_ids);
  if (const json::Value* text_part = model_config.find("text_config"))
    append_ids(*text_part, settings.end_ids);
  const std::optional<std::string_view> definition = file.document("tokenizer.json");
  if (!definition) return load_older_form(file, settings, model_config);
  Result<std::unique_ptr<tokenizer::Tokenizer>> tokenizer =
      tokenizer::load_tokenizer_json(*definition, settings.view());
  if (!tokenizer.ok()) return tokenizer.take_status().in("tokenizer.json");
  return tokenizer;
}

// Normalisation rules of Unigram vocabularies: an array of bytes.
Status read_charsmap(const model::Metadata& metadata, std::string& out) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  OPTIMA_ASSIGN(const auto* bytes, metadata.integers(kKey));
  if (bytes == nullptr) return {};
  for (const int64_t byte : *bytes) {
    if (byte < -128 || byte > 255)
      return Status(Code::format, text("metadata key '", kKey, "' holds ", byte, ", no byte"));
    out += static_cast<char>(byte);
  }
  return {};
}

Result<std::unique_ptr<tokenizer::Tokenizer>> load_gguf_tokenizer(const model::Metadata& metadata) {
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
  OPTIMA_ASSIGN(spec.lowercase, flag(metadata, "tokenizer.ggml.normalizer.lowercase"));
  OPTIMA_ASSIGN(spec.strip_accents, flag(metadata, "tokenizer.ggml.normalizer.strip_accents"));
  std::string charsmap;
  OPTIMA_TRY(read_charsmap(metadata, charsmap));
  spec.charsmap = charsmap;
  return tokenizer::Tokenizer::create(spec);
}

}  // namespace

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const model::ModelFile& file) {
  return file.format() == model::FileFormat::gguf ? load_gguf_tokenizer(file.metadata())
                                                  : load_hf_tokenizer(file);
}

uint64_t vocabulary_fingerprint(const tokenizer::Tokenizer& tokenizer) {
  uint64_t hash = 0;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string_view text = tokenizer.token_text(id);
    hash = XXH3_64bits_withSeed(text.data(), text.size(), hash) ^
           static_cast<uint64_t>(tokenizer.kind(id));
  }
  return hash;
}

}  // namespace optima::engine
