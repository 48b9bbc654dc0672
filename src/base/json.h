// A small strict JSON reader (RFC 8259) for the core: model configurations, vocabularies, chat
// messages. Objects keep the order of the text; of equal keys the last value wins, at the place
// of the first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace optima::json {

struct Member;
class Value;
using Array = std::vector<Value>;
using Object = std::vector<Member>;

class Value {
 public:
  Value() = default;  // null
  explicit Value(bool value);
  explicit Value(int64_t value);
  explicit Value(double value);
  explicit Value(std::string value);
  explicit Value(Array value);
  explicit Value(Object value);

  // Each is null unless the value is of that kind. A number is an integer when it is written
  // without fraction and exponent and fits 64 bits, else real.
  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&data_); }
  const double* real() const { return std::get_if<double>(&data_); }
  const std::string* string() const { return std::get_if<std::string>(&data_); }
  const Array* array() const { return std::get_if<Array>(&data_); }
  const Object* object() const { return std::get_if<Object>(&data_); }

  // The member of that name; null when there is none or the value is no object. Linear time.
  const Value* find(std::string_view key) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> data_;
};

struct Member {
  std::string key;
  Value value;
};

// Below Member, which the list of an object's members must know whole.
inline Value::Value(bool value) : data_(value) {}
inline Value::Value(int64_t value) : data_(value) {}
inline Value::Value(double value) : data_(value) {}
inline Value::Value(std::string value) : data_(std::move(value)) {}
inline Value::Value(Array value) : data_(std::move(value)) {}
inline Value::Value(Object value) : data_(std::move(value)) {}

struct ReadLimits {
  int32_t depth_max = 128;  // nesting of arrays and objects
};

// The whole text must be one value. Errors (invalid_argument) name line and column, both from 1;
// columns count bytes. A number beyond the range of double is an error.
Result<Value> parse(std::string_view text, const ReadLimits& limits = {});

}  // namespace optima::json
