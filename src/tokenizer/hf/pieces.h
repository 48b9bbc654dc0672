// A text on its way through the pre-tokenisers: one buffer and the pieces that are left of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/hf/regex.h"

namespace optima::tokenizer::hf {

// Whether the first character comes from the very beginning of the text that is encoded.
enum class Start : uint8_t { inside, text };

struct Piece {
  size_t begin, end;
  Start start;
};

struct Pieces {
  std::string text;
  std::vector<Piece> pieces;  // ascending, never empty ones

  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

// What becomes of a match, as the tokenizers library names it.
enum class SplitBehavior : uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous,
};

struct Cut {
  Range range;
  uint8_t is_match;
};

// Completes the matches in a piece of `bytes` by what lies between them.
void cuts_of(const std::vector<Range>& matches, size_t bytes, std::vector<Cut>& cuts);

// Appends the pieces of `piece` that the cuts and the behaviour make.
void append_pieces(const Piece& piece, std::vector<Cut>& cuts, SplitBehavior behavior,
                   std::vector<Piece>& out);

}  // namespace optima::tokenizer::hf
