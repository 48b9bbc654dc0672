// The library's own message formatter: joins pieces of text and numbers. No printf, no iostream,
// no locale.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace optima {

namespace text_detail {
inline void append(std::string& out, std::string_view piece) {
  out.append(piece);
}
inline void append(std::string& out, char c) {
  out.push_back(c);
}
template <typename Number>
requires(std::is_arithmetic_v<Number> &&
         !std::is_same_v<Number, char>) void append(std::string& out, Number number) {
  if constexpr (std::is_same_v<Number, bool>) {
    out.append(number ? "true" : "false");
  } else {
    char buffer[64];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  }
}
}  // namespace text_detail

// text("page ", 3, " of ", 7) == "page 3 of 7"
template <typename... Pieces>
std::string text(const Pieces&... pieces) {
  std::string out;
  (text_detail::append(out, pieces), ...);
  return out;
}

}  // namespace optima
