// Decimals of the bounds.
#include <algorithm>
#include <charconv>

#include "sampling/grammar/number_rules.h"

namespace optima::sampling::grammar {
namespace {

// From digits that may start and end with zeros.
Decimal normalised(bool negative, std::string digits, int32_t point) {
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  digits.erase(0, first);
  point -= static_cast<int32_t>(first);
  digits.erase(digits.find_last_not_of('0') + 1);
  return {negative, std::move(digits), point};
}

}  // namespace

Decimal Decimal::of(int64_t value) {
  const bool negative = value < 0;
  const uint64_t magnitude =
      negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string digits = std::to_string(magnitude);
  const auto point = static_cast<int32_t>(digits.size());
  return normalised(negative, std::move(digits), point);
}

Decimal Decimal::of(double value) {
  char buffer[64];
  const char* end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const char* at = buffer;
  const bool negative = *at == '-';
  if (negative) ++at;
  std::string digits;
  for (; at != end && *at != 'e'; ++at)
    if (*at != '.') digits.push_back(*at);
  int32_t exponent = 0;
  if (at != end) ++at;
  if (at != end && *at == '+') ++at;
  std::from_chars(at, end, exponent);
  return normalised(negative, std::move(digits), exponent + 1);
}

int Decimal::compare(const Decimal& other) const {
  if (is_zero() && other.is_zero()) return 0;
  if (is_zero()) return other.negative ? 1 : -1;
  if (other.is_zero()) return negative ? -1 : 1;
  if (negative != other.negative) return negative ? -1 : 1;
  int order = point != other.point ? (point < other.point ? -1 : 1) : digits.compare(other.digits);
  order = order < 0 ? -1 : order > 0 ? 1 : 0;
  return negative ? -order : order;
}

std::string Decimal::whole() const {
  if (point <= 0) return {};
  std::string result = digits.substr(0, static_cast<size_t>(point));
  result.resize(static_cast<size_t>(point), '0');
  return result;
}

std::string Decimal::fraction() const {
  if (point >= static_cast<int32_t>(digits.size())) return {};
  if (point >= 0) return digits.substr(static_cast<size_t>(point));
  return std::string(static_cast<size_t>(-point), '0') + digits;
}

std::optional<int64_t> Decimal::integer() const {
  if (!is_integer()) return std::nullopt;
  if (is_zero()) return 0;
  const std::string text = (negative ? "-" : "") + whole();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace optima::sampling::grammar
