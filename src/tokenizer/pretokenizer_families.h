// The named pre-tokenisers as data: what tokenizer.ggml.pre means.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace optima::tokenizer {

enum class Normalization : uint8_t { none, nfc };
// Whether a pre-token that is a token as a whole is that token, whatever the merges make of it.
enum class WholeWord : uint8_t { merge, take };
enum class BosDefault : uint8_t { omit, add };  // where the file does not say

// Falcon tells digits from other characters after it has written bytes as characters of the byte
// alphabet, where nine bytes look like numbers wherever they stand.
enum class DigitBytes : uint8_t { with_others, apart };

// Falcon first sets runs of punctuation apart, by a table that is older than that of the patterns.
enum class Punctuation : uint8_t { with_others, apart };

struct PretokenizerFamily {
  // Applied in order, each to the pieces that the former ones left; empty = none. A match is a
  // piece, and so is what lies between two matches.
  std::array<std::string_view, 6> patterns;
  Normalization normalization = Normalization::none;
  WholeWord whole_word = WholeWord::merge;
  BosDefault bos_default = BosDefault::omit;
  DigitBytes digit_bytes = DigitBytes::with_others;
  Punctuation punctuation = Punctuation::with_others;
};

// Null for a name that is not known. The empty name is "default".
const PretokenizerFamily* find_pretokenizer_family(std::string_view name);

// All known names, separated by ", ", for messages.
std::string pretokenizer_names();

}  // namespace optima::tokenizer
