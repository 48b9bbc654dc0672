// Unicode normalisation forms, for the vocabularies that were made on normalised text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace optima::tokenizer {

enum class NormalizationForm : uint8_t { nfc, nfd, nfkc, nfkd };

// The form of the valid stretches of `text`; bytes that are no part of a code point stay where
// they are. O(n log n) for every text.
std::string normalize(std::string_view text, NormalizationForm form);
inline std::string to_nfc(std::string_view text) {
  return normalize(text, NormalizationForm::nfc);
}

}  // namespace optima::tokenizer
