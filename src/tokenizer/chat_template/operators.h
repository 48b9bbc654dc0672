// Python's operations on values: printing, truth, order, arithmetic, access. All of them bound the
// depth and the work of walking nested values.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/chat_template/runtime.h"

namespace optima::tokenizer::jinja {

// print.cc
std::string_view type_name(const Value& value);  // as Python names the type
Status append_str(Runtime& runtime, TextBuffer& out, const Value& value);
Status append_repr(Runtime& runtime, TextBuffer& out, const Value& value);
Result<Value> str_of(Runtime& runtime, const Value& value);  // the value itself if a string
std::string real_repr(double value);                         // as Python writes a float

struct JsonStyle {
  bool ascii_only = false;
  bool sort_keys = false;
  bool has_indent = false;
  std::string indent;  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
Status append_json(Runtime& runtime, TextBuffer& out, const Value& value, const JsonStyle& style);

// operators.cc
enum class Operator : uint8_t {
  logical_or,
  logical_and,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  add,
  subtract,
  concatenate,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
};
std::string_view operator_text(Operator op);
bool is_true(const Value& value);
Result<bool> are_equal(Runtime& runtime, const Value& a, const Value& b);
// `op` is one of less, less_equal, greater, greater_equal.
Result<bool> is_ordered(Runtime& runtime, Operator op, const Value& a, const Value& b);
Result<bool> compare(Runtime& runtime, Operator op, const Value& a, const Value& b);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);
Result<uint64_t> hash_of(Runtime& runtime, const Value& key);

// arithmetic.cc
Result<Value> arithmetic(Runtime& runtime, Operator op, const Value& a, const Value& b);
Result<Value> negate(Runtime& runtime, const Value& value);
Result<Value> round_real(Runtime& runtime, double value, int64_t digits);

// access.cc
Result<Value> get_attribute(Runtime& runtime, const Value& value, const std::string& name);
Result<Value> get_item(Runtime& runtime, const Value& value, const Value& key);
// Bounds that are absent are Kind::missing.
struct SliceBounds {
  Value start, stop, step;
};
Result<Value> get_slice(Runtime& runtime, const Value& value, const SliceBounds& bounds);
// "a.b.0" as the filters' `attribute` argument means it; an integer is an index.
Result<Value> get_path(Runtime& runtime, const Value& value, const Value& path);
Result<int64_t> length_of(Runtime& runtime, const Value& value);
// The value's items as a sequence; empties a generator. Dicts yield their keys, strings their
// characters.
Result<Value> iterate(Runtime& runtime, const Value& value);
Result<Value> dict_view(Runtime& runtime, const Dict& dict, Flavor flavor);
Result<int64_t> to_index(Runtime& runtime, const Value& value, std::string_view what);
Status cannot_use_undefined(Runtime& runtime, const Value& value);

// format.cc
Result<Value> format_percent(Runtime& runtime, const std::string& format, const Value& arguments);
Result<Value> format_braces(Runtime& runtime, const std::string& format,
                            const Arguments& arguments);
Result<Value> format_time(Runtime& runtime, const std::string& format, int64_t unix_s);

// evaluator_expression.cc
std::string macro_name(const Value& macro);

// methods.cc
// The name of a method that values of this kind have, as a text that lives for ever; empty if none.
std::string_view find_method(const Value& self, std::string_view name);
Result<Value> call_method(Runtime& runtime, const Method& method, const Arguments& arguments);

// globals.cc
int64_t find_global(std::string_view name);  // -1 = none
std::string_view global_name(int64_t index);
Result<Value> call_global(Runtime& runtime, int64_t index, const Arguments& arguments);

// filters.cc, tests.cc
bool has_filter(std::string_view name);
Result<Value> call_filter(Runtime& runtime, std::string_view name, const Value& input,
                          const Arguments& arguments);
bool has_test(std::string_view name);
Result<bool> call_test(Runtime& runtime, std::string_view name, const Value& input,
                       const Arguments& arguments);

}  // namespace optima::tokenizer::jinja
