// Operations on UTF-8 text as Python's str has them, without values: white space, case, lines,
// pieces, positions counted in code points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace optima::tokenizer::jinja {

bool is_space(uint32_t code_point);  // Python's str.isspace for one character
// Bytes of white space at the start and at the end of the text.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

enum class Side : uint8_t { both, left, right };
// Without white space, or without the characters of `characters` if that is not empty.
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, Side side, std::string_view characters);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title_words(std::string_view text);  // str.title: a word starts after a non-letter
// Whether there is a cased character and none of the other case.
bool is_all_upper(std::string_view text);
bool is_all_lower(std::string_view text);
bool is_letter(uint32_t code_point);
bool is_digit(uint32_t code_point);

// Splitting stops when there are more than `pieces_max` pieces: the caller then refuses the result.
enum class LineEnds : uint8_t { drop, keep };
std::vector<std::string_view> split_lines(std::string_view text, LineEnds ends,
                                          size_t pieces_max = SIZE_MAX);
struct SplitLimits {
  int64_t cuts_max = -1;  // from the left; a negative number = no limit
  size_t pieces_max = SIZE_MAX;
};
std::vector<std::string_view> split_space(std::string_view text, const SplitLimits& limits);
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       const SplitLimits& limits);

std::string escape_html(std::string_view text);

// The byte at which code point number `index` starts; 0 <= index <= length.
size_t byte_of(std::string_view text, int64_t index);
int64_t count_of(std::string_view text, std::string_view part);  // occurrences, not overlapping

}  // namespace optima::tokenizer::jinja
