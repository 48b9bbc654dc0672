// What the models share: the vocabulary object, byte tokens, and the choice by "type". Old files
// name no type; then the members that only one kind has tell.
#include "tokenizer/hf/model.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace optima::tokenizer::hf {
namespace {

constexpr int64_t kIdGapsMax = 1 << 20;  // ids without a token that a file may leave

}  // namespace

Result<VocabularyEntries> read_vocabulary(const Component& component) {
  const json::Value* member = component.find("vocab");
  if (member == nullptr || member->object() == nullptr) return component.wrong("vocab", "object");
  const json::Object& object = *member->object();
  const int64_t ids_max = static_cast<int64_t>(object.size()) + kIdGapsMax;
  int64_t last = -1;
  for (const json::Member& entry : object) {
    const int64_t* id = entry.value.integer();
    if (id == nullptr || *id < 0 || *id >= ids_max || *id > INT32_MAX / 2) {
      return Status(Code::format,
                    text("tokenizer.json: ", component.place(), ".vocab: the id of '", entry.key,
                         "' is no whole number below ", ids_max, " (", object.size(), " tokens)"));
    }
    last = std::max(last, *id);
  }
  VocabularyEntries entries;
  entries.tokens.resize(static_cast<size_t>(last + 1));
  entries.count = static_cast<int32_t>(object.size());
  for (const json::Member& entry : object) {
    std::string_view& token = entries.tokens[static_cast<size_t>(*entry.value.integer())];
    if (token.empty()) {
      token = entry.key;
    } else {
      entries.aliases.emplace_back(entry.key, static_cast<int32_t>(*entry.value.integer()));
    }
  }
  return entries;
}

Vocabulary make_vocabulary(const VocabularyEntries& entries) {
  Vocabulary vocabulary(entries.tokens);
  for (const auto& [token, id] : entries.aliases) vocabulary.add_alias(token, id);
  return vocabulary;
}

void Model::find_byte_tokens() {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  byte_ids_.assign(256, -1);
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::array<char, 6> name = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
    byte_ids_[byte] = vocabulary_.find({name.data(), name.size()});
  }
  bytes_ = Bytes::fall_back;
}

bool Model::append_byte_tokens(std::string_view bytes, std::vector<int32_t>& ids) const {
  const size_t first = ids.size();
  for (const char byte : bytes) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id < 0) {
      ids.resize(first);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

Result<std::unique_ptr<Model>> Model::create(const Component& component) {
  OPTIMA_ASSIGN(std::string_view type, component.string_or("type", ""));
  const json::Value* vocab = component.find("vocab");
  if (type.empty() && component.find("merges") != nullptr) type = "BPE";
  if (type.empty() && vocab != nullptr && vocab->array() != nullptr) type = "Unigram";
  if (type.empty() && component.find("max_input_chars_per_word") != nullptr) type = "WordPiece";
  if (type == "BPE") return create_bpe(component);
  if (type == "Unigram") return create_unigram(component);
  if (type == "WordPiece") return create_word_piece(component);
  return component.unsupported("model", type);
}

}  // namespace optima::tokenizer::hf
