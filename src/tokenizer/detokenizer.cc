// Byte-level and byte-fallback tokens cut code points anywhere; the pieces of one wait here until
// it is whole. Pieces are those of the middle of a text: the leading space that decode() takes
// away belongs to the beginning of a prompt, never to an answer that goes on from one.
#include "tokenizer/detokenizer.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

// Moves the decided part of `pending` to the end of `out`.
void move_decided(std::string& pending, std::string& out) {
  size_t at = 0;
  while (at < pending.size()) {
    const Utf8Step step = utf8_step(pending, at);
    if (step.state == Utf8State::incomplete) break;
    out.append(step.state == Utf8State::valid ? std::string_view(pending).substr(at, step.bytes)
                                              : kReplacementCharacter);
    at += step.bytes;
  }
  pending.erase(0, at);
}

}  // namespace

Result<Detokenizer::Piece> Detokenizer::push(int32_t id) {
  Piece piece;
  OPTIMA_TRY(tokenizer_->append_piece(id, special_text_, piece.bytes));
  pending_.append(piece.bytes);
  move_decided(pending_, piece.text);
  return piece;
}

std::string Detokenizer::finish() {
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return incomplete ? std::string(kReplacementCharacter) : std::string();
}

}  // namespace optima::tokenizer
