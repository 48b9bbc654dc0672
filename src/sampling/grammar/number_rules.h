// Numbers in a range, exactly: the decimal text is compared with the decimal digits of the bounds
// as it is written; nothing is rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

// sign * 0.DIGITS * 10^point; digits neither start nor end with 0, and are empty for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  int32_t point = 0;

  static Decimal of(int64_t value);
  static Decimal of(double value);  // the shortest decimal that reads back as `value`; finite
  bool is_zero() const { return digits.empty(); }
  bool is_integer() const { return point >= static_cast<int32_t>(digits.size()); }
  // -1, 0, 1
  int compare(const Decimal& other) const;
  // The digits before and behind the point, of the magnitude.
  std::string whole() const;
  std::string fraction() const;
  std::optional<int64_t> integer() const;  // when it is one of 63 bits
};

struct NumberBound {
  Decimal value;
  bool open = false;  // the bound itself is out
};

struct NumberRange {
  std::optional<NumberBound> low, high;
  bool integer = false;  // written without point and exponent
  int64_t multiple = 0;  // integers that are multiples of it; 0 = all
};

// Edges for the texts of the numbers in the range. With a bound, a number with an exponent has one
// digit, not 0, before its point, and an exponent from -324 to 308: then the exponent tells which
// of two is larger.
void write_number(Builder& builder, StateId from, const NumberRange& range, StateId to);

constexpr int32_t kExponentLow = -324, kExponentHigh = 308;  // of a double

// Exponents behind the e, in one to three digits.
void write_exponent(Builder& builder, StateId from, int32_t low, int32_t high, StateId to);

}  // namespace optima::sampling::grammar
