// Reads what the file says about special tokens and cuts a text at them. What lies between is the
// business of byte_level_tokenizer.cc and sentencepiece_tokenizer.cc.
#include "tokenizer/tokenizer_base.h"

#include <array>
#include <limits>

#include "base/text.h"
#include "tokenizer/generation_ends.h"

namespace optima::tokenizer {
namespace {

Status size_mismatch(std::string_view what, size_t have, size_t tokens) {
  return Status(Code::format, text("vocabulary: ", have, " ", what, " for ", tokens, " tokens"),
                {.wanted = static_cast<int64_t>(tokens), .available = static_cast<int64_t>(have)});
}

}  // namespace

Result<std::vector<int32_t>> TokenizerBase::encode(std::string_view input, Special special,
                                                   SpecialText special_text) const {
  // Positions inside the algorithms are 32-bit; normalisation and space marks can triple a text.
  constexpr size_t kTextBytesMax = std::numeric_limits<int32_t>::max() / 4;
  if (input.size() > kTextBytesMax) {
    return Status(Code::invalid_argument,
                  text("text of ", input.size(), " bytes; at most ", kTextBytesMax, " at once"),
                  {.wanted = static_cast<int64_t>(input.size()),
                   .limit = static_cast<int64_t>(kTextBytesMax)});
  }
  std::vector<int32_t> ids;
  if (special == Special::add && adds_bos_) ids.push_back(bos_);
  for (size_t at = 0; at < input.size();) {
    const SpecialMatcher::Match match = matcher_.next(input, at, special_text);
    if (match.begin > at) OPTIMA_TRY(encode_text(input.substr(at, match.begin - at), ids));
    if (match.bytes > 0) ids.push_back(match.id);
    at = match.begin + match.bytes;
  }
  if (special == Special::add && adds_eos_) ids.push_back(eos_);
  return ids;
}

Status TokenizerBase::append_piece(int32_t id, SpecialText special_text, std::string& out) const {
  OPTIMA_TRY(check_id(id));
  switch (kind(id)) {
    case TokenKind::control:
    case TokenKind::unknown:
      if (special_text == SpecialText::parse) out.append(vocabulary_.text(id));
      break;
    case TokenKind::user_defined:
      append_symbol(id, out);
      break;
    case TokenKind::normal:
    case TokenKind::unused:
    case TokenKind::byte:
      append_text(id, out);
      break;
  }
  return Status();
}

std::string_view TokenizerBase::token_text(int32_t id) const {
  return id >= 0 && id < size() ? vocabulary_.text(id) : std::string_view();
}

Status TokenizerBase::check_id(int32_t id) const {
  if (id >= 0 && id < size()) return Status();
  return Status(Code::invalid_argument,
                text("token id ", id, " is outside the vocabulary of ", size()),
                {.wanted = id, .limit = size()});
}

Status TokenizerBase::read_spec(const VocabularySpec& spec, BosDefault bos_default) {
  OPTIMA_TRY(read_kinds(spec));
  OPTIMA_TRY(read_special_ids(spec));
  find_generation_ends(spec);
  const bool bos_wanted =
      spec.add_bos >= 0 ? spec.add_bos > 0 : bos_default == BosDefault::add && bos_ >= 0;
  const bool eos_wanted = spec.add_eos > 0;
  if ((bos_wanted && bos_ < 0) || (eos_wanted && eos_ < 0)) {
    return Status(Code::format, text("vocabulary: the file wants ", bos_wanted ? "BOS" : "EOS",
                                     " added but names no such token"));
  }
  adds_bos_ = bos_wanted;
  adds_eos_ = eos_wanted;
  return Status();
}

Status TokenizerBase::read_kinds(const VocabularySpec& spec) {
  if (!spec.kinds.empty() && spec.kinds.size() != spec.tokens.size()) {
    return size_mismatch("token types", spec.kinds.size(), spec.tokens.size());
  }
  kinds_.assign(spec.tokens.size(), TokenKind::normal);
  for (size_t i = 0; i < spec.kinds.size(); ++i) {
    const int64_t value = spec.kinds[i];
    if (value < static_cast<int64_t>(TokenKind::normal) ||
        value > static_cast<int64_t>(TokenKind::byte)) {
      return Status(Code::format, text("vocabulary: token ", i, " ('", spec.tokens[i],
                                       "') has type ", value, "; known are 1 to 6"));
    }
    kinds_[i] = static_cast<TokenKind>(value);
  }
  return Status();
}

Status TokenizerBase::read_special_ids(const VocabularySpec& spec) {
  struct Named {
    std::string_view name;
    int32_t id;
    TokenKind kind;
  };
  const std::array<Named, 5> named = {{{"bos", spec.bos, TokenKind::control},
                                       {"eos", spec.eos, TokenKind::control},
                                       {"eot", spec.eot, TokenKind::control},
                                       {"padding", spec.pad, TokenKind::control},
                                       {"unknown", spec.unknown, TokenKind::unknown}}};
  for (const Named& token : named) {
    if (token.id < -1 || token.id >= size()) {
      return Status(Code::format,
                    text("vocabulary: ", token.name, " token id ", token.id,
                         " is outside the vocabulary of ", size()),
                    {.wanted = token.id, .limit = size()});
    }
    // A file without token types still says by these ids what is not text. One id may have two
    // roles (SmolLM2's eos is its padding): the first role decides.
    if (token.id < 0 || !spec.kinds.empty()) continue;
    TokenKind& known = kinds_[static_cast<size_t>(token.id)];
    if (known == TokenKind::normal) known = token.kind;
  }
  bos_ = spec.bos;
  eos_ = spec.eos;
  unknown_ = spec.unknown;
  return Status();
}

void TokenizerBase::find_generation_ends(const VocabularySpec& spec) {
  ends_generation_.assign(kinds_.size(), 0);
  for (const int32_t id : {spec.eos, spec.eot}) {
    if (id >= 0) ends_generation_[static_cast<size_t>(id)] = 1;
  }
  mark_known_ends(*this, ends_generation_);
}

}  // namespace optima::tokenizer
