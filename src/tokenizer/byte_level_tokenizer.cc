// Text → pieces (pretokenizer.cc) → bytes as characters of the byte alphabet → merges. Bytes that
// the vocabulary has no token for are dropped before merging, as the tokenizers library does:
// small vocabularies lack bytes that their texts never had (SmolLM2: 0xF1 and some controls).
#include "tokenizer/byte_level_tokenizer.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/normalize.h"

namespace optima::tokenizer {
namespace {

bool is_ascii(std::string_view input) {
  for (const char c : input) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

// Bytes whose character in the byte alphabet is a number: the digits, and those of Latin-1 (powers
// and fractions).
bool looks_like_number(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte >= '0' && byte <= '9') || byte == 0xB2 || byte == 0xB3 || byte == 0xB9 ||
         (byte >= 0xBC && byte <= 0xBE);
}

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

// Cuts the pieces where such bytes begin and end, and runs of digits after every third.
std::vector<size_t> with_digit_bytes_apart(std::string_view input,
                                           const std::vector<size_t>& ends) {
  std::vector<size_t> finer;
  size_t at = 0;
  for (const size_t end : ends) {
    while (at < end) {
      const bool number = looks_like_number(input[at]);
      size_t run = at + 1;
      while (run < end && looks_like_number(input[run]) == number) ++run;
      for (size_t i = at; number && i + 3 <= run;) {
        const std::string_view three = input.substr(i, 3);
        if (!std::all_of(three.begin(), three.end(), is_ascii_digit)) {
          ++i;
          continue;
        }
        if (i > at) finer.push_back(i);
        finer.push_back(i + 3);
        at = i += 3;
      }
      if (at < run) finer.push_back(run);
      at = run;
    }
  }
  return finer;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> ByteLevelTokenizer::create(const VocabularySpec& spec) {
  const PretokenizerFamily* family = find_pretokenizer_family(spec.pre);
  if (family == nullptr) {
    return Status(Code::unsupported, text("pre-tokeniser '", spec.pre, "' is not known; known are ",
                                          pretokenizer_names()));
  }
  std::unique_ptr<ByteLevelTokenizer> made(new ByteLevelTokenizer(spec, *family));
  OPTIMA_TRY(made->read_spec(spec, family->bos_default));
  OPTIMA_ASSIGN(made->pretokenizer_, Pretokenizer::create(*family, PatternEngine::compiled));
  OPTIMA_ASSIGN(made->merges_, MergeTable::create(spec.merges, made->vocabulary_));
  for (int32_t byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<uint8_t>(byte);
    made->byte_ids_[value] = made->vocabulary_.find(made->alphabet_.character(value));
  }
  for (int32_t id = 0; id < made->size(); ++id) {
    const TokenKind kind = made->kind(id);
    if (kind == TokenKind::control || kind == TokenKind::user_defined ||
        kind == TokenKind::unknown) {
      made->add_special_token(id);
    }
  }
  return std::unique_ptr<Tokenizer>(std::move(made));
}

Status ByteLevelTokenizer::encode_text(std::string_view input, std::vector<int32_t>& ids) const {
  std::string normalized;
  if (family_->normalization == Normalization::nfc && !is_ascii(input)) {
    normalized = to_nfc(input);
    input = normalized;
  }
  OPTIMA_ASSIGN(std::vector<size_t> ends, pretokenizer_->split(input));
  if (family_->digit_bytes == DigitBytes::apart) ends = with_digit_bytes_apart(input, ends);
  MergeTable::Scratch scratch;
  std::string characters;
  size_t begin = 0;
  for (const size_t end : ends) {
    const std::string_view piece = input.substr(begin, end - begin);
    begin = end;
    if (family_->whole_word == WholeWord::take) {
      const int32_t whole = find_whole(piece, characters);
      if (whole >= 0) {
        ids.push_back(whole);
        continue;
      }
    }
    const size_t first = ids.size();
    for (const char byte : piece) {
      const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
      if (id >= 0) ids.push_back(id);
    }
    merges_.merge(ids, first, scratch);
  }
  return Status();
}

// The normal token that is this piece, or -1.
int32_t ByteLevelTokenizer::find_whole(std::string_view piece, std::string& characters) const {
  if (piece.size() > vocabulary_.text_bytes_max()) return -1;
  characters.clear();
  alphabet_.append_characters(piece, characters);
  const int32_t id = vocabulary_.find(characters);
  return id >= 0 && kind(id) == TokenKind::normal ? id : -1;
}

void ByteLevelTokenizer::append_text(int32_t id, std::string& out) const {
  alphabet_.append_bytes(vocabulary_.text(id), out);
}

// tokenizer.ggml.add_space_prefix is not read: converters copy it from settings that the
// byte-level families do not use, and no text of theirs begins with a space of its own.
Result<std::string> ByteLevelTokenizer::decode(std::span<const int32_t> ids,
                                               SpecialText special_text) const {
  std::string out;
  for (const int32_t id : ids) OPTIMA_TRY(append_piece(id, special_text, out));
  return out;
}

}  // namespace optima::tokenizer
