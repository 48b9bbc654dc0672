// SentencePiece writes spaces as U+2581. A text after a special token is a text of its own and gets
// the space prefix again, as the tokenizers library has it, which users compare us with.
#include "tokenizer/sentencepiece_base.h"

#include <algorithm>
#include <cmath>

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

VocabularySpec SentencePieceBase::with_named_tokens(const VocabularySpec& file) {
  VocabularySpec spec = file;
  spec.bos = id_or_named(file.bos, "<s>", TokenKind::control, file);
  spec.eos = id_or_named(file.eos, "</s>", TokenKind::control, file);
  spec.unknown = id_or_named(file.unknown, "<unk>", TokenKind::unknown, file);
  return spec;
}

Status SentencePieceBase::read_pieces(const VocabularySpec& spec) {
  if (spec.scores.size() != spec.tokens.size()) {
    return Status(
        Code::format,
        text("vocabulary: ", spec.scores.size(), " scores for ", spec.tokens.size(), " tokens"),
        {.wanted = size(), .available = static_cast<int64_t>(spec.scores.size())});
  }
  scores_.assign(spec.scores.begin(), spec.scores.end());
  is_piece_.assign(scores_.size(), 0);
  byte_ids_.fill(-1);
  user_defined_ = spec.user_defined;
  for (int32_t id = 0; id < size(); ++id) OPTIMA_TRY(read_piece(id));
  space_prefix_ = spec.add_space_prefix == 0 ? SpacePrefix::none : SpacePrefix::add;
  space_runs_ = spec.remove_extra_whitespaces ? SpaceRuns::collapse : SpaceRuns::keep;
  if (!spec.charsmap.empty()) {
    OPTIMA_ASSIGN(charsmap_, Charsmap::create(spec.charsmap, "normalisation rules"));
  }
  return Status();
}

Status SentencePieceBase::read_piece(int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (std::isnan(scores_[index])) {
    return Status(Code::format, text("vocabulary: the score of token ", id, " is no number"));
  }
  switch (kind(id)) {
    case TokenKind::normal:
    case TokenKind::unused:
      is_piece_[index] = 1;
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
      if (user_defined_ == UserDefined::inside) {
        symbols_.add(vocabulary_.text(id), id, TokenKind::user_defined);
        is_piece_[index] = 1;
        break;
      }
      if (const size_t spaces = spaces_in(vocabulary_.text(id)); spaces >= 2) {
        vocabulary_.add_alias(repeat_space_mark(spaces), id);
        scores_[index] = kSpaceRunScore - id;
        is_piece_[index] = 1;
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

// Leading spaces go before anything is added, so that a text of spaces alone is empty. The rules
// leave user-defined tokens as they are.
std::string SentencePieceBase::normalize(std::string_view input) const {
  const bool collapse = space_runs_ == SpaceRuns::collapse;
  const auto step = [&](std::string_view rest) {
    const SpecialMatcher::Match symbol = symbols_.at(rest, 0, SpecialText::literal);
    if (symbol.bytes > 0) return Charsmap::Rule{symbol.bytes, rest.substr(0, symbol.bytes)};
    if (charsmap_) {
      if (const std::optional<Charsmap::Rule> rule = charsmap_->longest(rest)) return *rule;
    }
    const Utf8Step character = utf8_step(rest, 0);
    const size_t bytes = character.state == Utf8State::valid ? character.bytes : 1;
    return Charsmap::Rule{bytes, rest.substr(0, bytes)};
  };
  while (collapse && !input.empty()) {
    const Charsmap::Rule first = step(input);
    if (first.replacement != " ") break;
    input.remove_prefix(first.bytes);
  }
  std::string out;
  if (input.empty()) return out;
  out.reserve(input.size() + input.size() / 2);
  if (space_prefix_ == SpacePrefix::add) out.append(kSpaceMark);
  bool after_space = collapse;
  while (!input.empty()) {
    const Charsmap::Rule next = step(input);
    input.remove_prefix(next.bytes);
    std::string_view added = next.replacement;
    while (after_space && added.starts_with(' ')) added.remove_prefix(1);
    for (const char c : added) {
      if (c == ' ') {
        out.append(kSpaceMark);
      } else {
        out.push_back(c);
      }
    }
    if (!added.empty()) after_space = collapse && added.ends_with(' ');
  }
  // sentencepiece does not tell a space mark of the text from one of its own here.
  while (collapse && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  return out;
}

// Neighbouring unknown characters are one unknown token. A vocabulary without byte tokens and
// without an unknown token has nothing to say about the symbol.
void SentencePieceBase::append_bytes_or_unknown(std::string_view symbol, size_t first,
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

void SentencePieceBase::append_text(int32_t id, std::string& out) const {
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
// Where runs of spaces collapse, each token that has only spaces before it loses one.
Result<std::string> SentencePieceBase::decode(std::span<const int32_t> ids,
                                              SpecialText special_text) const {
  std::string out;
  const bool collapse = space_runs_ == SpaceRuns::collapse;
  const bool loses_space = space_prefix_ == SpacePrefix::add || collapse;
  bool at_begin = loses_space;
  size_t text_begin = 0;
  for (const int32_t id : ids) {
    const size_t begin = out.size();
    OPTIMA_TRY(append_piece(id, special_text, out));
    const bool is_text = kind(id) == TokenKind::normal || kind(id) == TokenKind::unused ||
                         kind(id) == TokenKind::byte || is_piece_[static_cast<size_t>(id)] != 0;
    if (!is_text) {
      at_begin = loses_space;
      text_begin = out.size();
      continue;
    }
    const bool space = kind(id) != TokenKind::byte && out.size() > begin && out[begin] == ' ';
    if (at_begin && space) out.erase(begin, 1);
    at_begin = at_begin && collapse && out.size() == text_begin;
  }
  return out;
}

}  // namespace optima::tokenizer
