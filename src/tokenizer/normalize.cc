// Decomposition and composition are utf8proc's, one character at a time and on sorted text; the
// ordering of combining marks in between is ours, because utf8proc orders by insertion, and a
// text of a million marks would take it minutes.
#include "tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "tokenizer/hf/unicode.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer {
namespace {

constexpr char32_t kComposable = 0x300;  // the first combining mark: nothing below it changes
constexpr size_t kDecompositionMax = 32;

bool is_compatibility(NormalizationForm form) {
  return form == NormalizationForm::nfkc || form == NormalizationForm::nfkd;
}
bool is_composed(NormalizationForm form) {
  return form == NormalizationForm::nfc || form == NormalizationForm::nfkc;
}

// The models' tokenizers normalise by an older Unicode than utf8proc's; what is newer is to them a
// character that neither decomposes nor combines.
bool is_left_alone(char32_t value) {
  constexpr char32_t kFirst = 0x7FD;  // nothing below it is newer
  return value >= kFirst && hf::in_class(hf::CodePointClass::unnormalized, value);
}

void append_decomposed(char32_t value, NormalizationForm form, std::vector<utf8proc_int32_t>& out) {
  utf8proc_int32_t parts[kDecompositionMax];
  int boundary = 0;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (is_compatibility(form) ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(value), parts, kDecompositionMax, options, &boundary);
  if (count <= 0 || static_cast<size_t>(count) > kDecompositionMax) {
    out.push_back(static_cast<utf8proc_int32_t>(value));
  } else {
    out.insert(out.end(), parts, parts + count);
  }
}

int combining_class(utf8proc_int32_t value) {
  return value < static_cast<utf8proc_int32_t>(kComposable)
             ? 0
             : utf8proc_get_property(value)->combining_class;
}

void order_marks(std::vector<utf8proc_int32_t>& values) {
  for (auto at = values.begin(); at != values.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, values.end(), [](auto value) { return combining_class(value) == 0; });
    std::stable_sort(at, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

void flush(std::vector<utf8proc_int32_t>& values, NormalizationForm form, std::string& out) {
  order_marks(values);
  auto count = static_cast<utf8proc_ssize_t>(values.size());
  if (is_composed(form)) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    count = utf8proc_normalize_utf32(values.data(), count, options);
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(static_cast<char32_t>(values[static_cast<size_t>(i)]), out);
  }
  values.clear();
}

}  // namespace

std::string normalize(std::string_view text, NormalizationForm form, NormalizationTables tables) {
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> stretch;
  const bool knows_all = tables == NormalizationTables::newest;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.state == Utf8State::valid && (knows_all || !is_left_alone(step.value))) {
      append_decomposed(step.value, form, stretch);
    } else {
      flush(stretch, form, out);
      out.append(text.substr(at, step.bytes));
    }
    at += step.bytes;
  }
  flush(stretch, form, out);
  return out;
}

}  // namespace optima::tokenizer
