// Unigram: the segmentation of the highest sum of scores (Viterbi over the bytes that begin or end
// a character). Neighbouring unknown characters are one piece, which is looked up once more: it
// may be a token, or byte tokens.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/token_trie.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer::hf {
namespace {

constexpr double kUnknownPenalty = 10;   // below the worst score
constexpr size_t kTokenBytesMax = 4096;  // bounds the work at one position
constexpr size_t kPieceBytesMax = INT32_MAX / 2;

// The score as the tokenizers library reads it. Its JSON reader makes a double of the digits
// without the point and divides by the power of ten, which rounds twice; of two segmentations with
// nearly equal sums the last bit decides. Files have the shortest digits that name the double.
double score_as_read(double exact) {
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, std::abs(exact), std::chars_format::scientific)
          .ptr;
  uint64_t significand = 0;
  int exponent = 0;
  for (const char* at = digits; at != end; ++at) {
    if (*at == 'e') {
      const char* sign = at + 1;
      int power = 0;
      std::from_chars(*sign == '+' ? sign + 1 : sign, end, power);
      exponent += power;
      break;
    }
    if (*at == '.') continue;
    significand = significand * 10 + static_cast<uint64_t>(*at - '0');
    if (at != digits) --exponent;
  }
  const auto whole = static_cast<double>(significand);
  const double power = std::pow(10.0, std::abs(exponent));  // exact for what scores have
  const double read = exponent < 0 ? whole / power : whole * power;
  return exact < 0 ? -read : read;
}

class Unigram final : public Model {
 public:
  static Result<std::unique_ptr<Model>> create(const Component& component);

  Status encode(std::string_view piece, ModelScratch& scratch,
                std::vector<int32_t>& ids) const override {
    if (piece.size() > kPieceBytesMax) {
      return Status(Code::invalid_argument, text("piece of ", piece.size(), " bytes"),
                    {.wanted = static_cast<int64_t>(piece.size()), .limit = kPieceBytesMax});
    }
    OPTIMA_TRY(find_best(piece, scratch));
    const std::vector<ViterbiNode<double>>& nodes = scratch.nodes;
    std::vector<int32_t>& ends = scratch.path;  // from the last piece to the first
    ends.clear();
    for (auto end = static_cast<int32_t>(piece.size()); end > 0;) {
      ends.push_back(end);
      end = nodes[static_cast<size_t>(end)].begin;
    }
    for (size_t i = ends.size(); i-- > 0;) {
      const ViterbiNode<double>& node = nodes[static_cast<size_t>(ends[i])];
      while (is_unknown(node.id) && i > 0 &&
             is_unknown(nodes[static_cast<size_t>(ends[i - 1])].id)) {
        --i;
      }
      const auto begin = static_cast<size_t>(node.begin), end = static_cast<size_t>(ends[i]);
      OPTIMA_TRY(append(piece.substr(begin, end - begin), ids));
    }
    return {};
  }

 private:
  using Model::Model;

  bool is_unknown(int32_t id) const { return id < 0 || id == unknown_; }

  Status missing_unknown() const {
    return {Code::format, "the vocabulary names no unknown token, which this text needs"};
  }

  Status append(std::string_view token, std::vector<int32_t>& ids) const {
    if (const int32_t id = vocabulary_.find(token); id >= 0) {
      ids.push_back(id);
    } else if (bytes_ == Bytes::fall_back && append_byte_tokens(token, ids)) {
      return {};
    } else if (unknown_ >= 0) {
      ids.push_back(unknown_);
    } else {
      return missing_unknown();
    }
    return {};
  }

  Status find_best(std::string_view piece, ModelScratch& scratch) const {
    const bool all_known = find_best_path(
        piece, trie_, scratch.nodes, [this](double score, int32_t id, size_t /*bytes*/) {
          return (id < 0 ? unknown_score_ : scores_[static_cast<size_t>(id)]) + score;
        });
    return all_known || unknown_ >= 0 ? Status() : missing_unknown();
  }

  TokenTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
};

Result<std::unique_ptr<Model>> Unigram::create(const Component& component) {
  OPTIMA_ASSIGN(const json::Array* items, component.array("vocab"));
  std::vector<std::string_view> tokens;
  std::vector<double> scores;
  for (size_t i = 0; i < items->size(); ++i) {
    const json::Array* pair = (*items)[i].array();
    const bool whole = pair != nullptr && pair->size() == 2 && (*pair)[0].string() != nullptr &&
                       ((*pair)[1].real() != nullptr || (*pair)[1].integer() != nullptr);
    if (!whole) return component.wrong(text("vocab[", i, "]"), "token with its score");
    tokens.push_back(*(*pair)[0].string());
    const json::Value& score = (*pair)[1];
    scores.push_back(score.real() != nullptr ? score_as_read(*score.real())
                                             : static_cast<double>(*score.integer()));
    if (tokens.back().size() > kTokenBytesMax) {
      return Status(Code::unsupported,
                    text("tokenizer.json: ", component.place(), ".vocab[", i, "] has ",
                         tokens.back().size(), " bytes; at most ", kTokenBytesMax));
    }
  }
  if (tokens.empty()) return component.wrong("vocab", "list of tokens");
  std::unique_ptr<Unigram> made(
      new Unigram(Vocabulary(tokens), static_cast<int32_t>(tokens.size())));
  OPTIMA_ASSIGN(const int64_t unknown, component.integer_or("unk_id", -1));
  if (unknown < -1 || unknown >= static_cast<int64_t>(tokens.size())) {
    return component.wrong("unk_id", "id of a token");
  }
  made->unknown_ = static_cast<int32_t>(unknown);
  OPTIMA_ASSIGN(const int fall_back, component.flag_or("byte_fallback", 0));
  if (fall_back != 0) made->find_byte_tokens();
  made->unknown_score_ = *std::min_element(scores.begin(), scores.end()) - kUnknownPenalty;
  made->scores_ = std::move(scores);
  made->trie_ = TokenTrie(made->vocabulary_);
  return std::unique_ptr<Model>(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Model>> create_unigram(const Component& component) {
  return Unigram::create(component);
}

}  // namespace optima::tokenizer::hf
