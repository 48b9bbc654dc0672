// A magnitude is read digit by digit next to the digits of both bounds. What has to be remembered
// is how many digits were read, as far as the bounds have some, how the digits so far compare with
// each bound, and the remainder of the multiple: a finite automaton, explored from its start.
#include "sampling/grammar/number_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace optima::sampling::grammar {
namespace {

// Bounds of a magnitude, and what may be written.
struct Magnitude {
  std::optional<NumberBound> low, high;
  bool integer = false;
  bool mantissa = false;  // one digit before the point, not 0
  int64_t multiple = 0;
};

enum class Phase : uint8_t { start, zero, whole, point, fraction };

struct Reading {
  Phase phase = Phase::start;
  int32_t place = 0;  // digits read of this phase, cut where both bounds have no more
  std::array<int8_t, 2> order{};
  int64_t remainder = 0;
  auto operator<=>(const Reading&) const = default;
};

class MagnitudeReader {
 public:
  MagnitudeReader(Builder& builder, const Magnitude& magnitude)
      : builder_(builder), magnitude_(magnitude) {
    const std::optional<NumberBound>* bounds[2] = {&magnitude.low, &magnitude.high};
    for (size_t i = 0; i < 2; ++i) {
      if (!*bounds[i]) continue;
      whole_[i] = (*bounds[i])->value.whole();
      fraction_[i] = (*bounds[i])->value.fraction();
    }
    whole_cut_ = static_cast<int32_t>(std::max(whole_[0].size(), whole_[1].size())) + 1;
    fraction_cut_ = static_cast<int32_t>(std::max(fraction_[0].size(), fraction_[1].size()));
  }

  void write(StateId from, StateId to) {
    builder_.skip(from, state_of({}));
    for (size_t i = 0; i < order_.size() && !builder_.full(); ++i) {
      const Reading reading = order_[i];
      const StateId state = known_[reading];
      if (accepts(reading)) builder_.skip(state, to);
      for (int low = 0; low < 10;) {
        const std::optional<Reading> next = read(reading, low);
        int high = low;
        while (high < 9 && read(reading, high + 1) == next) ++high;
        if (next)
          builder_.bytes(state, static_cast<uint8_t>('0' + low), static_cast<uint8_t>('0' + high),
                         state_of(*next));
        low = high + 1;
      }
      if (!magnitude_.integer && (reading.phase == Phase::zero || reading.phase == Phase::whole)) {
        Reading next{Phase::point, 0, order_of_whole(reading), 0};
        builder_.bytes(state, '.', '.', state_of(next));
      }
    }
  }

 private:
  StateId state_of(const Reading& reading) {
    const auto known = known_.find(reading);
    if (known != known_.end()) return known->second;
    order_.push_back(reading);
    return known_.emplace(reading, builder_.state()).first->second;
  }

  static void compare(int8_t& order, int digit, char bound) {
    if (order == 0) order = static_cast<int8_t>(digit < bound - '0' ? -1 : digit > bound - '0');
  }

  std::optional<Reading> read(const Reading& now, int digit) const {
    Reading next = now;
    switch (now.phase) {
      case Phase::zero:
        return std::nullopt;
      case Phase::start:
        if (digit == 0) {
          if (magnitude_.mantissa) return std::nullopt;
          next.phase = Phase::zero;
          return next;
        }
        next.phase = Phase::whole;
        break;
      case Phase::whole:
        if (magnitude_.mantissa) return std::nullopt;
        break;
      case Phase::point:
        next.phase = Phase::fraction;
        break;
      case Phase::fraction:
        break;
    }
    const bool behind_point = next.phase == Phase::fraction;
    for (size_t i = 0; i < 2; ++i) {
      const std::string& bound = behind_point ? fraction_[i] : whole_[i];
      const auto place = static_cast<size_t>(now.place);
      if (place < bound.size())
        compare(next.order[i], digit, bound[place]);
      else if (behind_point)
        compare(next.order[i], digit, '0');
    }
    next.place = std::min(now.place + 1, behind_point ? fraction_cut_ : whole_cut_);
    if (magnitude_.multiple > 1)
      next.remainder = (now.remainder * 10 + digit) % magnitude_.multiple;
    return next;
  }

  // With the number of digits before the point known, how the number compares so far.
  std::array<int8_t, 2> order_of_whole(const Reading& reading) const {
    std::array<int8_t, 2> order = reading.order;
    for (size_t i = 0; i < 2; ++i) {
      const auto count = static_cast<int32_t>(whole_[i].size());
      if (reading.place != count) order[i] = reading.place < count ? -1 : 1;
    }
    return order;
  }

  bool accepts(const Reading& reading) const {
    if (reading.phase == Phase::start || reading.phase == Phase::point) return false;
    if (reading.remainder != 0) return false;
    const bool behind_point = reading.phase == Phase::fraction;
    std::array<int8_t, 2> order = behind_point ? reading.order : order_of_whole(reading);
    for (size_t i = 0; i < 2; ++i) {
      const auto left =
          static_cast<int32_t>(fraction_[i].size()) - (behind_point ? reading.place : 0);
      if (order[i] == 0 && left > 0) order[i] = -1;
    }
    const bool above = !magnitude_.low || order[0] > 0 || (order[0] == 0 && !magnitude_.low->open);
    const bool below =
        !magnitude_.high || order[1] < 0 || (order[1] == 0 && !magnitude_.high->open);
    return above && below;
  }

  Builder& builder_;
  const Magnitude& magnitude_;
  std::array<std::string, 2> whole_, fraction_;
  int32_t whole_cut_ = 0, fraction_cut_ = 0;
  std::map<Reading, StateId> known_;
  std::vector<Reading> order_;
};

// Numbers from low to high in exactly `width` digits.
void write_digits(Builder& builder, StateId from, int32_t low, int32_t high, int32_t width,
                  StateId to) {
  if (width == 0) return builder.skip(from, to);
  int32_t unit = 1;
  for (int32_t i = 1; i < width; ++i) unit *= 10;
  for (int32_t digit = low / unit; digit <= high / unit; ++digit) {
    const StateId next = builder.state();
    const auto byte = static_cast<uint8_t>('0' + digit);
    builder.bytes(from, byte, byte, next);
    write_digits(builder, next, std::max(low - digit * unit, 0),
                 std::min(high - digit * unit, unit - 1), width - 1, to);
  }
}

std::optional<NumberBound> mantissa_of(const std::optional<NumberBound>& bound) {
  NumberBound mantissa = *bound;
  mantissa.value.point = 1;
  return mantissa;
}

void write_scientific(Builder& builder, StateId from, const Magnitude& magnitude, StateId to) {
  const bool bounded_low = magnitude.low && !magnitude.low->value.is_zero();
  if (magnitude.high && magnitude.high->value.is_zero()) return;
  // 1e-324 reads as 0, which may be what is out; 3e-324 does not.
  const bool above_zero = magnitude.low && !bounded_low && magnitude.low->open;
  const int32_t least = bounded_low  ? magnitude.low->value.point - 1
                        : above_zero ? kExponentLow
                                     : kExponentLow - 1;
  const int32_t most = magnitude.high ? magnitude.high->value.point - 1 : kExponentHigh + 1;
  const auto part = [&](const Magnitude& mantissa, int32_t low, int32_t high) {
    low = std::max(low, kExponentLow);
    high = std::min(high, kExponentHigh);
    if (low > high) return;
    const StateId mark = builder.state(), exponent = builder.state();
    MagnitudeReader(builder, mantissa).write(from, mark);
    builder.bytes(mark, 'e', 'e', exponent);
    builder.bytes(mark, 'E', 'E', exponent);
    write_exponent(builder, exponent, low, high, to);
  };
  Magnitude mantissa;
  mantissa.mantissa = true;
  part(mantissa, least + 1, most - 1);
  if (above_zero && most > kExponentLow) {
    mantissa.low = NumberBound{Decimal::of(int64_t{3}), false};
    part(mantissa, kExponentLow, kExponentLow);
    mantissa.low.reset();
  }
  if (bounded_low) {
    mantissa.low = mantissa_of(magnitude.low);
    if (magnitude.high && least == most) mantissa.high = mantissa_of(magnitude.high);
    part(mantissa, least, least);
  }
  if (magnitude.high && !(bounded_low && least == most)) {
    mantissa.low.reset();
    mantissa.high = mantissa_of(magnitude.high);
    part(mantissa, most, most);
  }
}

void write_magnitude(Builder& builder, StateId from, const Magnitude& magnitude, StateId to) {
  MagnitudeReader(builder, magnitude).write(from, to);
  if (!magnitude.integer) write_scientific(builder, from, magnitude, to);
}

NumberBound magnitude_of(NumberBound bound) {
  bound.value.negative = false;
  return bound;
}

bool is_negative(const std::optional<NumberBound>& bound) {
  return bound && bound->value.negative;
}

}  // namespace

void write_exponent(Builder& builder, StateId from, int32_t low, int32_t high, StateId to) {
  const auto magnitudes = [&](StateId start, int32_t least, int32_t most) {
    int32_t unit = 1;
    for (int32_t width = 1; width <= 3; ++width) {
      unit *= 10;
      if (least < unit) write_digits(builder, start, least, std::min(most, unit - 1), width, to);
    }
  };
  const StateId positive = builder.state(), negative = builder.state();
  builder.bytes(from, '+', '+', positive);
  builder.skip(from, positive);
  builder.bytes(from, '-', '-', negative);
  if (high >= 0) magnitudes(positive, std::max(low, 0), high);
  if (low < 0) magnitudes(negative, std::max(-high, 1), -low);
}

void write_number(Builder& builder, StateId from, const NumberRange& range, StateId to) {
  Magnitude magnitude;
  magnitude.integer = range.integer || range.multiple > 0;
  magnitude.multiple = range.multiple;
  if (!is_negative(range.high)) {
    if (range.low && !is_negative(range.low)) magnitude.low = range.low;
    magnitude.high = range.high;
    write_magnitude(builder, from, magnitude, to);
  }
  if (range.low && !is_negative(range.low)) return;
  // Below zero the bounds change places. An integer zero is written without a sign.
  magnitude.low.reset();
  magnitude.high.reset();
  if (range.low) magnitude.high = magnitude_of(*range.low);
  if (is_negative(range.high))
    magnitude.low = magnitude_of(*range.high);
  else if (magnitude.integer || (range.high && range.high->value.is_zero() && range.high->open))
    magnitude.low = NumberBound{{}, true};
  const StateId digits = builder.state();
  builder.bytes(from, '-', '-', digits);
  write_magnitude(builder, digits, magnitude, to);
}

}  // namespace optima::sampling::grammar
