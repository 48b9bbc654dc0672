// Splits text into the pieces that byte-level BPE merges within.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/pretokenizer_families.h"

namespace optima::tokenizer {

// Compiled to machine code where the host allows it; interpreting gives the same pieces.
enum class PatternEngine : uint8_t { compiled, interpreted };

// Immutable after creation; split() may run on several threads at once.
class Pretokenizer {
 public:
  static Result<std::unique_ptr<Pretokenizer>> create(const PretokenizerFamily& family,
                                                      PatternEngine engine);
  ~Pretokenizer();

  // The ends of the pieces, ascending, the last one text.size(); none for the empty text. Every
  // byte is in one piece, whether the text is valid UTF-8 or not.
  Result<std::vector<size_t>> split(std::string_view text) const;

 private:
  class Pattern;
  Pretokenizer() = default;

  std::vector<std::unique_ptr<Pattern>> patterns_;
  Punctuation punctuation_ = Punctuation::with_others;
};

}  // namespace optima::tokenizer
