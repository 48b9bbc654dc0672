// Unicode properties come from utf8proc. Case is mapped character by character, except for the
// sharp s, whose capital is two letters.
#include "tokenizer/chat_template/text_tools.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace optima::tokenizer::jinja {
namespace {

// The first code point of the text; its byte count is at least one, so that loops move on.
CodePoint first_of(std::string_view text) {
  CodePoint point = decode_utf8(text, 0);
  point.byte_count = std::max(point.byte_count, 1u);
  return point;
}

size_t last_start(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

uint32_t lower_of(uint32_t code_point) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)));
}

uint32_t upper_of(uint32_t code_point) {
  return static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code_point)));
}

uint32_t title_of(uint32_t code_point) {
  return static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code_point)));
}

constexpr uint32_t kSharpS = 0xDF;

bool is_cased(uint32_t code_point) {
  return lower_of(code_point) != code_point || upper_of(code_point) != code_point ||
         code_point == kSharpS;
}

bool is_line_end(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

template <typename Predicate>
std::string_view strip_where(std::string_view text, Side side, Predicate matches) {
  while (side != Side::right && !text.empty()) {
    const CodePoint point = first_of(text);
    if (!matches(point.value)) break;
    text.remove_prefix(point.byte_count);
  }
  while (side != Side::left && !text.empty()) {
    const size_t start = last_start(text);
    if (!matches(decode_utf8(text, start).value)) break;
    text = text.substr(0, start);
  }
  return text;
}

template <typename Predicate>
bool all_cased(std::string_view text, Predicate is_wrong) {
  bool has_cased = false;
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    text.remove_prefix(point.byte_count);
    if (!is_cased(point.value)) continue;
    if (is_wrong(point.value)) return false;
    has_cased = true;
  }
  return has_cased;
}

}  // namespace

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

size_t leading_space(std::string_view text) {
  return text.size() - strip(text, Side::left).size();
}

size_t trailing_space(std::string_view text) {
  return text.size() - strip(text, Side::right).size();
}

std::string_view strip(std::string_view text, Side side) {
  return strip_where(text, side, is_space);
}

std::string_view strip(std::string_view text, Side side, std::string_view characters) {
  std::vector<uint32_t> set;
  while (!characters.empty()) {
    const CodePoint point = first_of(characters);
    set.push_back(point.value);
    characters.remove_prefix(point.byte_count);
  }
  std::sort(set.begin(), set.end());
  return strip_where(text, side,
                     [&](uint32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

std::string to_upper(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    text.remove_prefix(point.byte_count);
    if (point.value == kSharpS) {
      out.append("SS");
    } else {
      append_utf8(out, upper_of(point.value));
    }
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    text.remove_prefix(point.byte_count);
    append_utf8(out, lower_of(point.value));
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const CodePoint point = first_of(text);
  std::string out;
  if (point.value == kSharpS) {
    out = "Ss";
  } else {
    append_utf8(out, title_of(point.value));
  }
  return out + to_lower(text.substr(point.byte_count));
}

std::string title_words(std::string_view text) {
  std::string out;
  bool in_word = false;
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    text.remove_prefix(point.byte_count);
    const bool cased = is_cased(point.value);
    if (!in_word && point.value == kSharpS) {
      out.append("Ss");
    } else {
      append_utf8(out, !cased    ? point.value
                       : in_word ? lower_of(point.value)
                                 : title_of(point.value));
    }
    in_word = cased;
  }
  return out;
}

bool is_all_upper(std::string_view text) {
  return all_cased(text, [](uint32_t c) { return c == kSharpS || upper_of(c) != c; });
}

bool is_all_lower(std::string_view text) {
  return all_cased(text, [](uint32_t c) { return lower_of(c) != c; });
}

bool is_letter(uint32_t code_point) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point)) == UTF8PROC_CATEGORY_ND;
}

std::vector<std::string_view> split_lines(std::string_view text, LineEnds ends, size_t pieces_max) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size() && lines.size() <= pieces_max;) {
    const CodePoint point = first_of(text.substr(at));
    size_t next = at + point.byte_count;
    if (is_line_end(point.value)) {
      if (point.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.push_back(text.substr(start, (ends == LineEnds::keep ? next : at) - start));
      start = next;
    }
    at = next;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::vector<std::string_view> split_space(std::string_view text, const SplitLimits& limits) {
  std::vector<std::string_view> pieces;
  text = strip(text, Side::left);
  while (!text.empty() && pieces.size() <= limits.pieces_max) {
    if (limits.cuts_max >= 0 && static_cast<int64_t>(pieces.size()) == limits.cuts_max) {
      pieces.push_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      const CodePoint point = first_of(text.substr(end));
      if (is_space(point.value)) break;
      end += point.byte_count;
    }
    pieces.push_back(text.substr(0, end));
    text = strip(text.substr(end), Side::left);
  }
  return pieces;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       const SplitLimits& limits) {
  std::vector<std::string_view> pieces;
  const auto may_cut = [&] {
    const auto count = static_cast<int64_t>(pieces.size());
    return (limits.cuts_max < 0 || count < limits.cuts_max) && pieces.size() <= limits.pieces_max;
  };
  while (may_cut()) {
    const size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  pieces.push_back(text);
  return pieces;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr std::string_view kSpecial = "&<>\"'";
    constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    const size_t i = kSpecial.find(c);
    if (i == std::string_view::npos) {
      out.push_back(c);
    } else {
      out.append(kEntities[i]);
    }
  }
  return out;
}

size_t byte_of(std::string_view text, int64_t index) {
  size_t at = 0;
  for (int64_t i = 0; i < index && at < text.size(); ++i) {
    at += std::max(decode_utf8(text, at).byte_count, 1u);
  }
  return at;
}

int64_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return utf8_length(text) + 1;
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

}  // namespace optima::tokenizer::jinja
