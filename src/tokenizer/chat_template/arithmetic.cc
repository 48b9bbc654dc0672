// Arithmetic as in Python, on 64-bit integers: where Python's would grow beyond that, an error.
#include <charconv>
#include <cmath>

#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

Status overflow(const Runtime& runtime) {
  return runtime.fail("integer beyond 64 bits");
}

Status no_such_operation(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  OPTIMA_TRY(cannot_use_undefined(runtime, a));
  OPTIMA_TRY(cannot_use_undefined(runtime, b));
  return runtime.fail(text("'", operator_text(op), "' does not work between '", type_name(a),
                           "' and '", type_name(b), "'"));
}

Result<Value> power_whole(Runtime& runtime, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return overflow(runtime);
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow(runtime);
  }
  return Value::integer(result);
}

Result<Value> whole_operation(Runtime& runtime, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) return overflow(runtime);
      return Value::integer(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow(runtime);
      return Value::integer(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow(runtime);
      return Value::integer(result);
    case Operator::divide:
      if (b == 0) return runtime.fail("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == 0) return runtime.fail("division by zero");
      if (b == -1) {  // the quotient of the least integer would overflow
        if (op == Operator::modulo) return Value::integer(0);
        if (__builtin_sub_overflow(int64_t{0}, a, &result)) return overflow(runtime);
        return Value::integer(result);
      }
      const int64_t remainder = a % b;
      const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
      if (op == Operator::modulo) return Value::integer(adjust ? remainder + b : remainder);
      return Value::integer(a / b - (adjust ? 1 : 0));
    }
    default:
      if (b >= 0) return power_whole(runtime, a, b);
      if (a == 0) return runtime.fail("zero to a negative power");
      return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
}

Result<Value> real_operation(Runtime& runtime, Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return Value::real(a + b);
    case Operator::subtract:
      return Value::real(a - b);
    case Operator::multiply:
      return Value::real(a * b);
    case Operator::divide:
      if (b == 0) return runtime.fail("division by zero");
      return Value::real(a / b);
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == 0) return runtime.fail("division by zero");
      double remainder = std::fmod(a, b);
      double quotient = (a - remainder) / b;
      if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b, quotient -= 1;
      if (op == Operator::modulo) {
        return Value::real(remainder == 0 ? std::copysign(0.0, b) : remainder);
      }
      const double floor = std::floor(quotient);
      if (quotient == 0) return Value::real(std::copysign(0.0, a / b));
      return Value::real(quotient - floor > 0.5 ? floor + 1 : floor);
    }
    default: {
      if (a == 0 && b < 0) return runtime.fail("zero to a negative power");
      if (a < 0 && b != std::floor(b)) return runtime.fail("a complex number");
      const double result = std::pow(a, b);
      if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) {
        return runtime.fail("number out of range");
      }
      return Value::real(result);
    }
  }
}

Result<Value> repeat(Runtime& runtime, const Value& value, int64_t count) {
  if (count < 0) count = 0;
  if (value.is(Kind::string)) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<int64_t>(value.text().size()), count, &bytes)) {
      bytes = INT64_MAX;
    }
    OPTIMA_TRY(runtime.allow_text(bytes));
    std::string out;
    if (bytes > 0) {
      out.reserve(static_cast<size_t>(bytes));
      for (int64_t i = 0; i < count; ++i) out.append(value.text());
    }
    return runtime.string(std::move(out));
  }
  const Sequence& sequence = value.sequence();
  int64_t items = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(sequence.items.size()), count, &items)) {
    items = INT64_MAX;
  }
  OPTIMA_TRY(runtime.allow_items(items));
  std::vector<Value> out;
  if (items > 0) {
    for (int64_t i = 0; i < count; ++i) {
      out.insert(out.end(), sequence.items.begin(), sequence.items.end());
    }
  }
  return runtime.sequence(sequence.flavor, std::move(out));
}

bool is_repeatable(const Value& value) {
  return value.is(Kind::string) ||
         (value.is(Kind::sequence) && value.sequence().flavor <= Flavor::tuple);
}

Result<Value> add_texts(Runtime& runtime, const Value& a, const Value& b) {
  // A text marked safe makes what is added to it safe, by escaping it.
  const bool safe = a.string().safe || b.string().safe;
  const auto part = [&](const Value& value) {
    return safe && !value.string().safe ? escape_html(value.text()) : value.text();
  };
  OPTIMA_TRY(runtime.allow_text(static_cast<int64_t>(a.text().size() + b.text().size())));
  OPTIMA_ASSIGN(Value result, runtime.string(part(a) + part(b)));
  static_cast<String*>(result.object())->safe = safe;
  return result;
}

}  // namespace

Result<Value> arithmetic(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  OPTIMA_TRY(runtime.tick());
  if (a.is_whole() && b.is_whole()) return whole_operation(runtime, op, a.whole(), b.whole());
  if (a.is_number() && b.is_number()) return real_operation(runtime, op, a.number(), b.number());
  if (op == Operator::add && a.is(Kind::string) && b.is(Kind::string)) {
    return add_texts(runtime, a, b);
  }
  if (op == Operator::add && a.kind() == b.kind() && is_repeatable(a) && is_repeatable(b) &&
      a.sequence().flavor == b.sequence().flavor) {
    const std::vector<Value>& right = b.sequence().items;
    OPTIMA_TRY(runtime.allow_items(static_cast<int64_t>(a.sequence().items.size() + right.size())));
    std::vector<Value> items = a.sequence().items;
    items.insert(items.end(), right.begin(), right.end());
    return runtime.sequence(a.sequence().flavor, std::move(items));
  }
  if (op == Operator::multiply && is_repeatable(a) && b.is_whole()) {
    return repeat(runtime, a, b.whole());
  }
  if (op == Operator::multiply && a.is_whole() && is_repeatable(b)) {
    return repeat(runtime, b, a.whole());
  }
  if (op == Operator::modulo && a.is(Kind::string)) return format_percent(runtime, a.text(), b);
  return no_such_operation(runtime, op, a, b);
}

Result<Value> negate(Runtime& runtime, const Value& value) {
  if (value.is(Kind::real)) return Value::real(-value.number());
  if (value.is_whole()) return whole_operation(runtime, Operator::subtract, 0, value.whole());
  OPTIMA_TRY(cannot_use_undefined(runtime, value));
  return runtime.fail(text("'-' does not work on '", type_name(value), "'"));
}

Result<Value> round_real(Runtime& runtime, double value, int64_t digits) {
  constexpr int64_t kDigitsMax = 324;  // beyond them every double is exact, or zero
  if (!std::isfinite(value) || digits > kDigitsMax) return Value::real(value);
  if (digits < -kDigitsMax) return Value::real(std::copysign(0.0, value));
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return Value::real(std::nearbyint(value / scale) * scale);
  }
  // Printing with that many digits rounds the exact binary value, half to even.
  char buffer[1024];
  const auto printed = std::to_chars(buffer, buffer + sizeof buffer, value,
                                     std::chars_format::fixed, static_cast<int>(digits));
  double rounded = 0;
  if (printed.ec != std::errc() ||
      std::from_chars(buffer, printed.ptr, rounded).ec != std::errc()) {
    return runtime.fail("number out of range");
  }
  return Value::real(rounded);
}

}  // namespace optima::tokenizer::jinja
