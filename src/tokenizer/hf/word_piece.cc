// WordPiece: from the left always the longest token; a word that does not come out even is one
// unknown token.
#include <algorithm>

#include "base/text.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

class WordPiece final : public Model {
 public:
  static Result<std::unique_ptr<Model>> create(const Component& component);
  static std::unique_ptr<Model> create(std::span<const std::string_view> tokens,
                                       std::string_view unknown) {
    std::unique_ptr<WordPiece> made(
        new WordPiece(Vocabulary(tokens), static_cast<int32_t>(tokens.size())));
    made->prefix_ = "##";
    made->unknown_ = made->vocabulary_.find(unknown);
    return made;
  }

  Status encode(std::string_view piece, ModelScratch& scratch,
                std::vector<int32_t>& ids) const override {
    const size_t first = ids.size();
    int64_t characters = 0;
    for_each_code_point(piece, [&](char32_t, std::string_view) { ++characters; });
    bool whole = characters <= characters_max_;
    for (size_t begin = 0; whole && begin < piece.size();) {
      const size_t bytes = longest_at(piece, begin, scratch.text, ids);
      whole = bytes > 0;
      begin += bytes;
    }
    if (!whole) {
      ids.resize(first);
      if (unknown_ < 0) {
        return Status(Code::format,
                      "the vocabulary lacks its unknown token, which this text needs");
      }
      ids.push_back(unknown_);
    }
    return {};
  }

 private:
  using Model::Model;

  // Appends the longest token at `begin` and returns its bytes; 0 = there is none.
  size_t longest_at(std::string_view piece, size_t begin, std::string& token,
                    std::vector<int32_t>& ids) const {
    const size_t end = std::min(piece.size(), begin + vocabulary_.text_bytes_max());
    token.assign(begin > 0 ? prefix_ : "");
    const size_t prefix = token.size();
    token.append(piece.substr(begin, end - begin));
    while (token.size() > prefix) {
      if (const int32_t id = vocabulary_.find(token); id >= 0) {
        ids.push_back(id);
        return token.size() - prefix;
      }
      token.pop_back();
    }
    return 0;
  }

  std::string prefix_;
  int64_t characters_max_ = 100;
};

Result<std::unique_ptr<Model>> WordPiece::create(const Component& component) {
  OPTIMA_ASSIGN(const VocabularyEntries entries, read_vocabulary(component));
  std::unique_ptr<WordPiece> made(new WordPiece(make_vocabulary(entries), entries.count));
  OPTIMA_ASSIGN(const std::string_view unknown, component.string_or("unk_token", "[UNK]"));
  OPTIMA_ASSIGN(made->prefix_, component.string_or("continuing_subword_prefix", "##"));
  OPTIMA_ASSIGN(made->characters_max_, component.integer_or("max_input_chars_per_word", 100));
  made->unknown_ = made->vocabulary_.find(unknown);
  return std::unique_ptr<Model>(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Model>> create_word_piece(std::span<const std::string_view> tokens,
                                                 std::string_view unknown) {
  return WordPiece::create(tokens, unknown);
}

Result<std::unique_ptr<Model>> create_word_piece(const Component& component) {
  return WordPiece::create(component);
}

}  // namespace optima::tokenizer::hf
