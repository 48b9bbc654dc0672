// Sums of scores are kept in single precision, as sentencepiece keeps them.
#include "tokenizer/unigram_tokenizer.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "tokenizer/viterbi.h"

namespace optima::tokenizer {
namespace {

constexpr float kUnknownPenalty = 10;    // below the worst score
constexpr float kByteBonus = 0.1F;       // of a user-defined token, for each byte but one
constexpr size_t kTokenBytesMax = 4096;  // bounds the work at one position

}  // namespace

Result<std::unique_ptr<Tokenizer>> UnigramTokenizer::create(const VocabularySpec& file) {
  const VocabularySpec spec = with_named_tokens(file);
  std::unique_ptr<UnigramTokenizer> made(new UnigramTokenizer(spec));
  OPTIMA_TRY(made->read_spec(spec, BosDefault::omit));
  OPTIMA_TRY(made->read_pieces(spec));
  float score_min = std::numeric_limits<float>::max();
  std::vector<std::string_view> pieces(spec.tokens.size());
  for (int32_t id = 0; id < made->size(); ++id) {
    const auto index = static_cast<size_t>(id);
    if (made->kind(id) == TokenKind::normal) {
      score_min = std::min(score_min, static_cast<float>(made->scores_[index]));
    }
    if (!made->has_piece(id) || made->kind(id) == TokenKind::unused) continue;
    pieces[index] = spec.tokens[index];
    if (pieces[index].size() > kTokenBytesMax) {
      return Status(Code::unsupported, text("vocabulary: token ", id, " has ", pieces[index].size(),
                                            " bytes; at most ", kTokenBytesMax));
    }
  }
  made->unknown_score_ = score_min - kUnknownPenalty;
  made->trie_ = hf::TokenTrie(Vocabulary(pieces));
  return std::unique_ptr<Tokenizer>(std::move(made));
}

float UnigramTokenizer::score_with(float score, int32_t id, size_t bytes) const {
  if (id < 0) return unknown_score_ + score;
  if (kind(id) == TokenKind::user_defined)
    return static_cast<float>(bytes - 1) * kByteBonus + score;
  return static_cast<float>(scores_[static_cast<size_t>(id)]) + score;
}

Status UnigramTokenizer::encode_text(std::string_view input, std::vector<int32_t>& ids) const {
  const std::string normalized = normalize(input);
  const std::string_view rest = normalized;
  std::vector<ViterbiNode<float>> nodes;
  find_best_path(rest, trie_, nodes, [this](float score, int32_t id, size_t bytes) {
    return score_with(score, id, bytes);
  });
  std::vector<size_t> ends;  // from the last piece to the first
  for (size_t end = rest.size(); end > 0; end = static_cast<size_t>(nodes[end].begin)) {
    ends.push_back(end);
  }
  const size_t first = ids.size();
  for (size_t i = ends.size(); i-- > 0;) {
    const ViterbiNode<float>& node = nodes[ends[i]];
    const auto begin = static_cast<size_t>(node.begin);
    if (node.id >= 0) {
      ids.push_back(node.id);
    } else {
      append_bytes_or_unknown(rest.substr(begin, ends[i] - begin), first, ids);
    }
  }
  return Status();
}

}  // namespace optima::tokenizer
