// BPE: characters become tokens, byte tokens or the unknown token; then merges, lowest rank first.
// Two habits of the tokenizers library show in the ids and are kept: an unknown token that waits
// to be fused is written after byte tokens that follow it, and a character may be no token at all
// (it vanishes) when the file names no unknown token.
#include <optional>

#include "base/text.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

class Bpe final : public Model {
 public:
  static Result<std::unique_ptr<Model>> create(const Component& component);
  static Result<std::unique_ptr<Model>> create(const BpeParts& parts);

  Status encode(std::string_view piece, ModelScratch& scratch,
                std::vector<int32_t>& ids) const override {
    if (whole_words_ == WholeWords::take) {
      if (const int32_t id = vocabulary_.find(piece); id >= 0) {
        ids.push_back(id);
        return {};
      }
    }
    const size_t first = ids.size();
    bool lacks_unknown = false;
    const bool affixes = !prefix_.empty() || !suffix_.empty();
    bool unknown_waits = false;
    size_t at = 0;
    for_each_code_point(piece, [&](char32_t value, std::string_view character) {
      std::string_view symbol = character;
      if (affixes) {
        scratch.text.assign(at == 0 ? "" : prefix_).append(character);
        if (at + character.size() == piece.size()) scratch.text.append(suffix_);
        symbol = scratch.text;
      }
      at += character.size();
      const int32_t id = affixes || value >= kTableSize ? vocabulary_.find(symbol) : table_[value];
      if (id >= 0) {
        if (unknown_waits) ids.push_back(unknown_);
        unknown_waits = false;
        ids.push_back(id);
      } else if (bytes_ == Bytes::fall_back && append_byte_tokens(symbol, ids)) {
        return;
      } else if (unknown_ >= 0) {
        if (unknown_waits && unknowns_ == Unknowns::each) ids.push_back(unknown_);
        unknown_waits = true;
      } else if (!unknown_name_.empty()) {
        lacks_unknown = true;
      }
    });
    if (lacks_unknown) {
      return Status(Code::format, text("the vocabulary lacks its unknown token '", unknown_name_,
                                       "', which this text needs"));
    }
    if (unknown_waits) ids.push_back(unknown_);
    merges_.merge(ids, first, scratch.merges);
    return {};
  }

 private:
  enum class WholeWords : uint8_t { merge, take };
  enum class Unknowns : uint8_t { each, fused };
  static constexpr size_t kTableSize = 0x250;  // ASCII, Latin, the byte alphabet

  using Model::Model;
  Status read_merges(const Component& component);
  void find_first_characters();

  MergeTable merges_;
  std::string prefix_, suffix_, unknown_name_;
  WholeWords whole_words_ = WholeWords::merge;
  Unknowns unknowns_ = Unknowns::each;
  std::vector<int32_t> table_;  // ids of the first characters
};

// "a b", or ["a", "b"] where tokens may have spaces.
std::optional<MergeTable::Pair> pair_of(const json::Value& item) {
  if (const std::string* joined = item.string()) {
    const size_t space = joined->find(' ');
    if (space == std::string::npos || joined->find(' ', space + 1) != std::string::npos) return {};
    const std::string_view view = *joined;
    return MergeTable::Pair{view.substr(0, space), view.substr(space + 1)};
  }
  const json::Array* parts = item.array();
  if (parts == nullptr || parts->size() != 2) return {};
  const std::string *left = (*parts)[0].string(), *right = (*parts)[1].string();
  if (left == nullptr || right == nullptr) return {};
  return MergeTable::Pair{*left, *right};
}

Status Bpe::read_merges(const Component& component) {
  OPTIMA_ASSIGN(const json::Array* items, component.array("merges"));
  std::vector<MergeTable::Pair> pairs;
  pairs.reserve(items->size());
  for (size_t i = 0; i < items->size(); ++i) {
    const std::string* line = (*items)[i].string();
    if (line != nullptr && line->starts_with("#version")) continue;
    const std::optional<MergeTable::Pair> pair = pair_of((*items)[i]);
    if (!pair) return component.wrong(text("merges[", i, "]"), "pair of tokens");
    pairs.push_back(*pair);
  }
  Result<MergeTable> made = MergeTable::create(pairs, prefix_.size(), vocabulary_);
  if (!made.ok()) return made.take_status().in("tokenizer.json: " + component.place());
  merges_ = made.take();
  return {};
}

Result<std::unique_ptr<Model>> Bpe::create(const Component& component) {
  OPTIMA_ASSIGN(const VocabularyEntries entries, read_vocabulary(component));
  std::unique_ptr<Bpe> made(new Bpe(make_vocabulary(entries), entries.count));
  if (component.find("dropout") != nullptr) {
    const json::Value* dropout = component.find("dropout");
    const bool none = (dropout->real() != nullptr && *dropout->real() == 0) ||
                      (dropout->integer() != nullptr && *dropout->integer() == 0);
    if (!none) return component.unsupported("option", "dropout");
  }
  OPTIMA_ASSIGN(made->prefix_, component.string_or("continuing_subword_prefix", ""));
  OPTIMA_ASSIGN(made->suffix_, component.string_or("end_of_word_suffix", ""));
  OPTIMA_ASSIGN(made->unknown_name_, component.string_or("unk_token", ""));
  OPTIMA_ASSIGN(const int fuse, component.flag_or("fuse_unk", 0));
  OPTIMA_ASSIGN(const int fall_back, component.flag_or("byte_fallback", 0));
  OPTIMA_ASSIGN(const int ignore_merges, component.flag_or("ignore_merges", 0));
  made->unknowns_ = fuse != 0 ? Unknowns::fused : Unknowns::each;
  made->whole_words_ = ignore_merges != 0 ? WholeWords::take : WholeWords::merge;
  if (fall_back != 0) made->find_byte_tokens();
  made->unknown_ = made->vocabulary_.find(made->unknown_name_);
  made->find_first_characters();
  OPTIMA_TRY(made->read_merges(component));
  return std::unique_ptr<Model>(std::move(made));
}

void Bpe::find_first_characters() {
  table_.resize(kTableSize);
  std::string character;
  for (char32_t value = 0; value < kTableSize; ++value) {
    character.clear();
    append_utf8(value, character);
    table_[value] = vocabulary_.find(character);
  }
}

Result<std::unique_ptr<Model>> Bpe::create(const BpeParts& parts) {
  const auto count = static_cast<int32_t>(parts.tokens.size());
  std::unique_ptr<Bpe> made(new Bpe(Vocabulary(parts.tokens), count));
  made->unknown_name_ = parts.unknown;
  made->unknown_ = made->vocabulary_.find(parts.unknown);
  made->unknowns_ = Unknowns::fused;
  made->find_byte_tokens();
  made->find_first_characters();
  OPTIMA_ASSIGN(made->merges_, MergeTable::create(parts.merges, 0, made->vocabulary_));
  return std::unique_ptr<Model>(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Model>> create_byte_fallback_bpe(const BpeParts& parts) {
  return Bpe::create(parts);
}

Result<std::unique_ptr<Model>> create_bpe(const Component& component) {
  return Bpe::create(component);
}

}  // namespace optima::tokenizer::hf
