// Makes a text fit for the regular expression engine without moving a byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace optima::tokenizer {

// A copy of `text` of the same length, valid UTF-8, that the pre-tokenisers' patterns split at the
// same places: nullopt when the text itself will do. In the copy
// - each byte that is no part of a code point is a control character (neither letter, nor number,
//   nor space), so that every byte stays in exactly one piece;
// - a character that PCRE2's Unicode tables do not know yet, or class otherwise than the engines
//   that the vocabularies were made with, is an old character of the wanted class.
std::optional<std::string> pattern_subject(std::string_view text);

}  // namespace optima::tokenizer
