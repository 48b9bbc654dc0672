// Classes of code points as the tokenizers library tells them apart.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/hf/unicode_tables.h"

namespace optima::tokenizer::hf {

bool is_space(char32_t value);  // Unicode's White_Space
bool in_class(CodePointClass which, char32_t value);
bool is_cjk_ideograph(char32_t value);  // the blocks that BERT's normaliser sets apart
void append_lowercase(char32_t value, std::string& out);

// Calls visit(value, bytes) for each code point of the text; of bytes that are no part of one,
// value is kNoCodePoint, which is in no class.
inline constexpr char32_t kNoCodePoint = 0x110000;
template <typename Visit>
void for_each_code_point(std::string_view text, const Visit& visit);

}  // namespace optima::tokenizer::hf

#include "tokenizer/utf8.h"

namespace optima::tokenizer::hf {

template <typename Visit>
void for_each_code_point(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const bool valid = step.state == Utf8State::valid;
    const size_t bytes = valid ? step.bytes : 1;
    visit(valid ? step.value : kNoCodePoint, text.substr(at, bytes));
    at += bytes;
  }
}

}  // namespace optima::tokenizer::hf
