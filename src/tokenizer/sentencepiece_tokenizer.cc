// Spaces become U+2581, then neighbouring symbols merge, best score first, until no pair makes a
// piece; what is no piece in the end falls back to byte tokens or to the unknown token.
//
// User-defined tokens inside of a text merge with nothing. Those that cut a text (GGUF's) and are
// runs of spaces are not looked for in the text like the others; they
// are pieces that merge before all scored ones, shortest first, as in the tokenizers library. A run
// longer than the longest such token splits differently that way than by longest match (35 spaces
// are 16 and 19 in Gemma's vocabulary).
#include "tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tokenizer/utf8.h"

namespace optima::tokenizer {

// Merges the symbols of one text; lives as long as that.
class SentencePieceTokenizer::Merger {
 public:
  Merger(const SentencePieceTokenizer& tokenizer, std::string_view text)
      : tokenizer_(tokenizer), text_(text) {}

  void run(std::vector<int32_t>& ids) {
    first_ = ids.size();
    split_characters();
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols_.size()); ++i) append_candidate(i);
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Candidate best = heap_.back();
      heap_.pop_back();
      merge(best);
    }
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) emit(at(i), ids);
  }

 private:
  struct Symbol {
    int32_t begin, bytes;    // bytes 0 = merged into its left neighbour
    int32_t previous, next;  // -1 = none
    int32_t id;              // -1 = no piece
  };
  struct Candidate {
    double score;
    int32_t left, bytes;  // bytes of both symbols together; differs = the candidate is stale
    int32_t id;
  };

  // For std::push_heap, which keeps the greatest on top: best score, then leftmost.
  static bool later(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  }
  Symbol& at(int32_t symbol) { return symbols_[static_cast<size_t>(symbol)]; }
  std::string_view text_of(int32_t begin, int32_t bytes) const {
    return text_.substr(static_cast<size_t>(begin), static_cast<size_t>(bytes));
  }

  void split_characters() {
    for (size_t begin = 0; begin < text_.size();) {
      const Utf8Step step = utf8_step(text_, begin);
      const size_t bytes = step.state == Utf8State::valid ? step.bytes : 1;
      const auto index = static_cast<int32_t>(symbols_.size());
      const bool last = begin + bytes == text_.size();
      symbols_.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(bytes), index - 1,
                          last ? -1 : index + 1,
                          tokenizer_.find_piece(text_.substr(begin, bytes))});
      begin += bytes;
    }
  }

  // Appends the pair that begins at `left` to the heap's memory if it makes a piece.
  bool append_candidate(int32_t left) {
    const Symbol& a = at(left);
    if (a.next < 0) return false;
    const Symbol& b = at(a.next);
    const int32_t bytes = a.bytes + b.bytes;
    const int32_t id = tokenizer_.find_piece(text_of(a.begin, bytes));
    if (id < 0) return false;
    heap_.push_back({tokenizer_.scores_[static_cast<size_t>(id)], left, bytes, id});
    if (tokenizer_.kind(id) == TokenKind::unused) halves_[id] = {a.id, b.id};
    return true;
  }

  void merge(const Candidate& best) {
    Symbol& left = at(best.left);
    if (left.bytes == 0 || left.next < 0) return;
    Symbol& right = at(left.next);
    if (left.bytes + right.bytes != best.bytes) return;
    left.bytes = best.bytes;
    left.id = best.id;
    right.bytes = 0;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = best.left;
    for (const int32_t begin : {left.previous, best.left}) {
      if (begin < 0 || !append_candidate(begin)) continue;
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
  }

  // Unused pieces take part in merging but not in the result: they come apart again as they were
  // made. A stack, because a crafted vocabulary can nest them as deep as a token is long.
  void emit(const Symbol& symbol, std::vector<int32_t>& ids) {
    if (symbol.id < 0) {
      tokenizer_.append_bytes_or_unknown(text_of(symbol.begin, symbol.bytes), first_, ids);
      return;
    }
    std::vector<int32_t> pending = {symbol.id};
    while (!pending.empty()) {
      const int32_t id = pending.back();
      pending.pop_back();
      const auto halves = halves_.find(id);
      if (halves == halves_.end() || halves->second.first < 0 || halves->second.second < 0) {
        ids.push_back(id);
      } else {
        pending.push_back(halves->second.second);
        pending.push_back(halves->second.first);
      }
    }
  }

  const SentencePieceTokenizer& tokenizer_;
  std::string_view text_;
  size_t first_ = 0;  // where this text's ids begin
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
  std::unordered_map<int32_t, std::pair<int32_t, int32_t>> halves_;  // of unused pieces
};

Result<std::unique_ptr<Tokenizer>> SentencePieceTokenizer::create(const VocabularySpec& file) {
  const VocabularySpec spec = with_named_tokens(file);
  std::unique_ptr<SentencePieceTokenizer> made(new SentencePieceTokenizer(spec));
  OPTIMA_TRY(made->read_spec(spec, BosDefault::add));
  OPTIMA_TRY(made->read_pieces(spec));
  return std::unique_ptr<Tokenizer>(std::move(made));
}

Status SentencePieceTokenizer::encode_text(std::string_view input,
                                           std::vector<int32_t>& ids) const {
  const std::string normalized = normalize(input);
  const std::string_view rest = normalized;
  for (size_t at = 0; at < rest.size();) {
    const SpecialMatcher::Match symbol = symbols_.next(rest, at, SpecialText::literal);
    Merger(*this, rest.substr(at, symbol.begin - at)).run(ids);
    if (symbol.bytes > 0) ids.push_back(symbol.id);
    at = symbol.begin + symbol.bytes;
  }
  return Status();
}

int32_t SentencePieceTokenizer::find_piece(std::string_view piece) const {
  const int32_t id = vocabulary_.find(piece);
  return id >= 0 && has_piece(id) ? id : -1;
}

}  // namespace optima::tokenizer
