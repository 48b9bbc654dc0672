// Unicode normalisation form C, for the vocabularies that were made on normalised text.
#pragma once

#include <string>
#include <string_view>

namespace optima::tokenizer {

// NFC of the valid stretches of `text`; bytes that are no part of a code point stay where they
// are. O(n log n) for every text.
std::string to_nfc(std::string_view text);

}  // namespace optima::tokenizer
