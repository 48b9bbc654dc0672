// Regular expressions, in the part of ECMA-262's language (that of JSON Schema) which is regular:
//   literals   . (all but line feed)   [a-z] [^a-z]   \d \D \w \W \s \S (ASCII; \s also the spaces
//   of Unicode)   \t \n \r \f \v \0 \xHH \uHHHH \u{H...}   ( ) (?: ) (?<name> )   |   * + ? {m}
//   {m,} {m,n}, each also with ? behind it (which texts match is the same)   ^ $
// Refused by name: backreferences, lookaround, word boundaries, flags, \p, possessive quantifiers.
#pragma once

#include <string_view>

#include "base/status.h"
#include "sampling/grammar/text_automaton.h"

namespace optima::sampling::grammar {

enum class RegexMatch : uint8_t {
  whole,     // the whole text matches
  anywhere,  // some part of the text does, as JSON Schema has it
};

// `nesting` bounds groups in groups.
Result<TextAutomaton> regex_automaton(std::string_view pattern, RegexMatch match,
                                      const Limits& limits);

// The network of texts that match as a whole.
Result<StateId> compile_regex(std::string_view pattern, Builder& builder);

}  // namespace optima::sampling::grammar
