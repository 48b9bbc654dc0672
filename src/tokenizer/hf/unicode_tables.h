// Where the character classes of the tokenizers library differ from utf8proc's categories.
#pragma once

#include <cstdint>
#include <span>

namespace optima::tokenizer::hf {

enum class CodePointClass : uint8_t {
  word,          // letters, marks, decimal digits, letter-like numbers, connectors
  number,        // every kind of number
  punctuation,   // with all of ASCII's signs
  nonspacing,    // marks that BERT's normaliser strips
  mark,          // marks that StripAccents strips
  cleaned,       // what BERT's normaliser deletes
  unnormalized,  // newer than the library's normalisation forms, which leave it as it is
};

struct CodePointRange {
  char32_t first, last;
};
struct LowercaseRange {
  char32_t first, last;
  int32_t distance;  // to the lower case letter
};

// Sorted, not overlapping. In these ranges membership is the opposite of what unicode.cc derives
// from the general category.
std::span<const CodePointRange> class_exceptions(CodePointClass which);
std::span<const LowercaseRange> lowercase_exceptions();

}  // namespace optima::tokenizer::hf
