// Spaces become U+2581, then neighbouring symbols merge, best score first, until no pair makes a
// piece; what is no piece in the end falls back to byte tokens or to the unknown token.
//
// Two conventions come from the tokenizers library, which users compare us with:
// - A text after a special token is a text of its own: it gets the space prefix again.
// - User-defined tokens that are runs of spaces are not looked for in the text like the others;
//   they are pieces that merge before all scored ones, shortest first. A run longer than the
//   longest such token splits differently that way than by longest match (35 spaces are 16 and 19
//   in Gemma's vocabulary).
#include "tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr double kSpaceRunScore = 1e12;  // above every score of a real vocabulary

std::optional<uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

// The byte that "<0x0A>" stands for.
std::optional<uint8_t> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const std::optional<uint8_t> high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<uint8_t>(*high * 16 + *low);
}

// How many spaces the text is made of; 0 = it has something else.
size_t spaces_in(std::string_view token) {
  size_t count = 0;
  while (!token.empty()) {
    const size_t bytes = token.starts_with(' ') ? 1 : kSpaceMark.size();
    if (bytes > 1 && !token.starts_with(kSpaceMark)) return 0;
    token.remove_prefix(bytes);
    ++count;
  }
  return count;
}

std::string repeat_space_mark(size_t count) {
  std::string marks;
  for (size_t i = 0; i < count; ++i) marks.append(kSpaceMark);
  return marks;
}

// Llama's files may leave out the ids of its well-known tokens.
int32_t id_or_named(int32_t id, std::string_view name, TokenKind kind, const VocabularySpec& spec) {
  if (id >= 0) return id;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const bool of_kind = i >= spec.kinds.size() || spec.kinds[i] == static_cast<int64_t>(kind);
    if (spec.tokens[i] == name && of_kind) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace

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
  VocabularySpec spec = file;
  spec.bos = id_or_named(file.bos, "<s>", TokenKind::control, file);
  spec.eos = id_or_named(file.eos, "</s>", TokenKind::control, file);
  spec.unknown = id_or_named(file.unknown, "<unk>", TokenKind::unknown, file);
  std::unique_ptr<SentencePieceTokenizer> made(new SentencePieceTokenizer(spec));
  OPTIMA_TRY(made->read_spec(spec, BosDefault::add));
  OPTIMA_TRY(made->read_pieces(spec));
  made->space_prefix_ = spec.add_space_prefix == 0 ? SpacePrefix::none : SpacePrefix::add;
  made->space_runs_ = spec.remove_extra_whitespaces ? SpaceRuns::collapse : SpaceRuns::keep;
  return std::unique_ptr<Tokenizer>(std::move(made));
}

Status SentencePieceTokenizer::read_pieces(const VocabularySpec& spec) {
  if (spec.scores.size() != spec.tokens.size()) {
    return Status(
        Code::format,
        text("vocabulary: ", spec.scores.size(), " scores for ", spec.tokens.size(), " tokens"),
        {.wanted = size(), .available = static_cast<int64_t>(spec.scores.size())});
  }
  scores_.assign(spec.scores.begin(), spec.scores.end());
  mergeable_.assign(scores_.size(), 0);
  byte_ids_.fill(-1);
  for (int32_t id = 0; id < size(); ++id) OPTIMA_TRY(read_piece(id));
  return Status();
}

Status SentencePieceTokenizer::read_piece(int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (std::isnan(scores_[index])) {
    return Status(Code::format, text("vocabulary: the score of token ", id, " is no number"));
  }
  switch (kind(id)) {
    case TokenKind::normal:
    case TokenKind::unused:
      mergeable_[index] = 1;
      break;
    case TokenKind::byte: {
      const std::optional<uint8_t> byte = byte_of(vocabulary_.text(id));
      if (!byte) {
        return Status(Code::format, text("vocabulary: byte token ", id, " is named '",
                                         vocabulary_.text(id), "', not '<0x00>' to '<0xFF>'"));
      }
      byte_ids_[*byte] = id;
      break;
    }
    case TokenKind::user_defined:
      if (const size_t spaces = spaces_in(vocabulary_.text(id)); spaces >= 2) {
        vocabulary_.add_alias(repeat_space_mark(spaces), id);
        scores_[index] = kSpaceRunScore - id;
        mergeable_[index] = 1;
        break;
      }
      [[fallthrough]];
    case TokenKind::control:
    case TokenKind::unknown:
      add_special_token(id);
      break;
  }
  return Status();
}

Status SentencePieceTokenizer::encode_text(std::string_view input,
                                           std::vector<int32_t>& ids) const {
  const std::string normalized = normalize(input);
  Merger(*this, normalized).run(ids);
  return Status();
}

std::string SentencePieceTokenizer::normalize(std::string_view input) const {
  const bool collapse = space_runs_ == SpaceRuns::collapse;
  if (collapse) input.remove_prefix(std::min(input.find_first_not_of(' '), input.size()));
  std::string out;
  out.reserve(input.size() + input.size() / 2);
  if (space_prefix_ == SpacePrefix::add) out.append(kSpaceMark);
  char before = '\0';
  for (const char c : input) {
    if (c != ' ') {
      out.push_back(c);
    } else if (!collapse || before != ' ') {
      out.append(kSpaceMark);
    }
    before = c;
  }
  // sentencepiece does not tell a space mark of the text from one of its own here.
  while (collapse && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  return out;
}

int32_t SentencePieceTokenizer::find_piece(std::string_view piece) const {
  const int32_t id = vocabulary_.find(piece);
  return id >= 0 && mergeable_[static_cast<size_t>(id)] != 0 ? id : -1;
}

// Neighbouring unknown characters are one unknown token. A vocabulary without byte tokens and
// without an unknown token has nothing to say about the symbol.
void SentencePieceTokenizer::append_bytes_or_unknown(std::string_view symbol, size_t first,
                                                     std::vector<int32_t>& ids) const {
  const bool bytes_known = std::all_of(symbol.begin(), symbol.end(), [&](char byte) {
    return byte_ids_[static_cast<uint8_t>(byte)] >= 0;
  });
  if (bytes_known) {
    for (const char byte : symbol) ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  } else if (unknown_ >= 0 && (ids.size() == first || ids.back() != unknown_)) {
    ids.push_back(unknown_);
  }
}

void SentencePieceTokenizer::append_text(int32_t id, std::string& out) const {
  const std::string_view piece = vocabulary_.text(id);
  if (kind(id) == TokenKind::byte) {
    out.push_back(static_cast<char>(byte_of(piece).value_or(0)));
    return;
  }
  for (size_t at = 0; at < piece.size();) {
    if (piece.substr(at).starts_with(kSpaceMark)) {
      out.push_back(' ');
      at += kSpaceMark.size();
    } else {
      out.push_back(piece[at++]);
    }
  }
}

// encode() put one space before each text that begins or follows a special token; it goes again.
Result<std::string> SentencePieceTokenizer::decode(std::span<const int32_t> ids,
                                                   SpecialText special_text) const {
  std::string out;
  bool prefixed = space_prefix_ == SpacePrefix::add;
  for (const int32_t id : ids) {
    const size_t begin = out.size();
    OPTIMA_TRY(append_piece(id, special_text, out));
    const bool is_text = kind(id) == TokenKind::normal || kind(id) == TokenKind::unused ||
                         kind(id) == TokenKind::byte || mergeable_[static_cast<size_t>(id)] != 0;
    if (is_text && prefixed && out.size() > begin && out[begin] == ' ') out.erase(begin, 1);
    prefixed = !is_text && space_prefix_ == SpacePrefix::add;
  }
  return out;
}

}  // namespace optima::tokenizer
