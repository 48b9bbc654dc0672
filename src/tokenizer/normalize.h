// Unicode normalisation forms, for the vocabularies that were made on normalised text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace optima::tokenizer {

enum class NormalizationForm : uint8_t { nfc, nfd, nfkc, nfkd };
// Characters that are newer than the tables of the tokenizers library neither decompose nor combine
// there. `newest`: all that utf8proc knows do.
enum class NormalizationTables : uint8_t { tokenizers, newest };

// The form of the valid stretches of `text`; bytes that are no part of a code point stay where
// they are. O(n log n) for every text.
std::string normalize(std::string_view text, NormalizationForm form,
                      NormalizationTables tables = NormalizationTables::tokenizers);
inline std::string to_nfc(std::string_view text) {
  return normalize(text, NormalizationForm::nfc);
}

}  // namespace optima::tokenizer
