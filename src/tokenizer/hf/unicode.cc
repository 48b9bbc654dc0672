// utf8proc knows Unicode 14; the tokenizers library mixes several versions, one per class. What
// differs is in unicode_tables.cc, found by asking that library about every code point.
#include "tokenizer/hf/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace optima::tokenizer::hf {
namespace {

constexpr uint32_t bit(utf8proc_category_t category) {
  return 1u << category;
}
constexpr uint32_t kLetters = bit(UTF8PROC_CATEGORY_LU) | bit(UTF8PROC_CATEGORY_LL) |
                              bit(UTF8PROC_CATEGORY_LT) | bit(UTF8PROC_CATEGORY_LM) |
                              bit(UTF8PROC_CATEGORY_LO);
constexpr uint32_t kMarks =
    bit(UTF8PROC_CATEGORY_MN) | bit(UTF8PROC_CATEGORY_MC) | bit(UTF8PROC_CATEGORY_ME);
constexpr uint32_t kLetterNumbers = bit(UTF8PROC_CATEGORY_ND) | bit(UTF8PROC_CATEGORY_NL);
constexpr uint32_t kPunctuation = bit(UTF8PROC_CATEGORY_PC) | bit(UTF8PROC_CATEGORY_PD) |
                                  bit(UTF8PROC_CATEGORY_PS) | bit(UTF8PROC_CATEGORY_PE) |
                                  bit(UTF8PROC_CATEGORY_PI) | bit(UTF8PROC_CATEGORY_PF) |
                                  bit(UTF8PROC_CATEGORY_PO);

uint32_t categories_of(CodePointClass which) {
  switch (which) {
    case CodePointClass::word:
      return kLetters | kMarks | kLetterNumbers | bit(UTF8PROC_CATEGORY_PC);
    case CodePointClass::number:
      return kLetterNumbers | bit(UTF8PROC_CATEGORY_NO);
    case CodePointClass::punctuation:
      return kPunctuation;
    case CodePointClass::nonspacing:
      return bit(UTF8PROC_CATEGORY_MN);
    case CodePointClass::mark:
      return kMarks;
    case CodePointClass::cleaned:
      return bit(UTF8PROC_CATEGORY_CC) | bit(UTF8PROC_CATEGORY_CF) | bit(UTF8PROC_CATEGORY_CO);
    case CodePointClass::unnormalized:
      return 0;
  }
  return 0;
}

// The range that holds `value`, or null. Ranges are sorted.
template <typename Range>
const Range* find_range(std::span<const Range> ranges, char32_t value) {
  const auto next =
      std::upper_bound(ranges.begin(), ranges.end(), value,
                       [](char32_t wanted, const Range& range) { return wanted < range.first; });
  if (next == ranges.begin()) return nullptr;
  const Range& range = *(next - 1);
  return value <= range.last ? &range : nullptr;
}

}  // namespace

bool is_space(char32_t value) {
  if (value < 0x80) return value == ' ' || (value >= 0x09 && value <= 0x0D);
  return value == 0x85 || value == 0xA0 || value == 0x1680 ||
         (value >= 0x2000 && value <= 0x200A) || value == 0x2028 || value == 0x2029 ||
         value == 0x202F || value == 0x205F || value == 0x3000;
}

bool in_class(CodePointClass which, char32_t value) {
  if (value >= kNoCodePoint) return false;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  const bool nearly = (categories_of(which) & bit(category)) != 0;
  return nearly != (find_range(class_exceptions(which), value) != nullptr);
}

bool is_cjk_ideograph(char32_t value) {
  return (value >= 0x4E00 && value <= 0x9FFF) || (value >= 0x3400 && value <= 0x4DBF) ||
         (value >= 0x20000 && value <= 0x2A6DF) || (value >= 0x2A700 && value <= 0x2B73F) ||
         (value >= 0x2B740 && value <= 0x2B81F) || (value >= 0x2B920 && value <= 0x2CEAF) ||
         (value >= 0xF900 && value <= 0xFAFF) || (value >= 0x2F800 && value <= 0x2FA1F);
}

void append_lowercase(char32_t value, std::string& out) {
  constexpr char32_t kCapitalIWithDot = 0x130, kDotAbove = 0x307;  // the one that becomes two
  if (value < 0x80) {
    out.push_back(static_cast<char>(value >= 'A' && value <= 'Z' ? value + 32 : value));
  } else if (value == kCapitalIWithDot) {
    out.push_back('i');
    append_utf8(kDotAbove, out);
  } else if (const LowercaseRange* range = find_range(lowercase_exceptions(), value)) {
    append_utf8(static_cast<char32_t>(static_cast<int32_t>(value) + range->distance), out);
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value))), out);
  }
}

}  // namespace optima::tokenizer::hf
