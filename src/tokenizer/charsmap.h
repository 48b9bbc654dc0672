// SentencePiece's compiled normalisation rules: texts and what they become.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace optima::tokenizer {

// Immutable. Total over any bytes, whatever file the rules came from.
class Charsmap {
 public:
  // `bytes`: "precompiled_charsmap"; `place` names it in errors.
  static Result<Charsmap> create(std::string_view bytes, std::string_view place);

  struct Rule {
    size_t bytes;  // of the text that it replaces
    std::string_view replacement;
  };
  // The rule for the shortest or the longest prefix of `text` that has one.
  std::optional<Rule> shortest(std::string_view text) const;
  std::optional<Rule> longest(std::string_view text) const;

 private:
  enum class Want : uint8_t { shortest, longest };
  std::optional<Rule> find(std::string_view text, Want want) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace optima::tokenizer
