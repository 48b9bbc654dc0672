// JSON by hand: the shared parts of RFC 8259.
#include "sampling/grammar/json_rules.h"

#include "sampling/grammar/number_rules.h"
#include "sampling/grammar/text_automaton.h"

namespace optima::sampling::grammar {
namespace {

constexpr int kSpaceMax = 64;

}  // namespace

StateId JsonRules::space() {
  if (space_) return *space_;
  StateId now = builder_.final_state();
  space_ = now;
  for (int i = 0; i < kSpaceMax; ++i) {
    const StateId next = builder_.final_state();
    for (const char byte : {' ', '\t', '\n', '\r'})
      builder_.bytes(now, static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), next);
    now = next;
  }
  return *space_;
}

void JsonRules::open(StateId from, char byte, StateId to) {
  const StateId after = builder_.state();
  builder_.bytes(from, static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), after);
  builder_.call(after, space(), to);
}

void JsonRules::close(StateId from, char byte, StateId to) {
  const StateId before = builder_.state();
  builder_.call(from, space(), before);
  builder_.bytes(before, static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), to);
}

void JsonRules::separator(StateId from, char byte, StateId to) {
  const StateId before = builder_.state();
  builder_.call(from, space(), before);
  open(before, byte, to);
}

StateId JsonRules::character() {
  if (character_) return *character_;
  character_ = builder_.state();
  TextWriter(builder_, TextEncoding::json)
      .set(*character_, CodePointSet::all(), builder_.final_state());
  return *character_;
}

StateId JsonRules::string() {
  if (string_) return *string_;
  string_ = builder_.state();
  const StateId inside = builder_.state();
  builder_.bytes(*string_, '"', '"', inside);
  TextWriter(builder_, TextEncoding::json).set(inside, CodePointSet::all(), inside);
  builder_.bytes(inside, '"', '"', builder_.final_state());
  return *string_;
}

void JsonRules::whole_number(StateId from, StateId to) {
  const StateId more = builder_.state();
  builder_.bytes(from, '0', '0', to);
  builder_.bytes(from, '1', '9', more);
  builder_.bytes(more, '0', '9', more);
  builder_.skip(more, to);
}

void JsonRules::fraction(StateId from, StateId to) {
  const StateId point = builder_.state(), digits = builder_.state();
  builder_.skip(from, to);
  builder_.bytes(from, '.', '.', point);
  builder_.bytes(point, '0', '9', digits);
  builder_.bytes(digits, '0', '9', digits);
  builder_.skip(digits, to);
}

void JsonRules::exponent(StateId from, StateId to) {
  const StateId mark = builder_.state();
  builder_.skip(from, to);
  builder_.bytes(from, 'e', 'e', mark);
  builder_.bytes(from, 'E', 'E', mark);
  write_exponent(builder_, mark, kExponentLow, kExponentHigh, to);
}

StateId JsonRules::number() {
  if (number_) return *number_;
  number_ = builder_.state();
  const StateId unsigned_start = builder_.state(), whole = builder_.state();
  const StateId decimal = builder_.state(), end = builder_.final_state();
  builder_.bytes(*number_, '-', '-', unsigned_start);
  builder_.skip(*number_, unsigned_start);
  whole_number(unsigned_start, whole);
  fraction(whole, decimal);
  exponent(decimal, end);
  return *number_;
}

StateId JsonRules::integer() {
  if (integer_) return *integer_;
  integer_ = builder_.state();
  const StateId negative = builder_.state(), more = builder_.final_state();
  builder_.bytes(*integer_, '0', '0', builder_.final_state());
  builder_.bytes(*integer_, '1', '9', more);
  builder_.bytes(*integer_, '-', '-', negative);
  builder_.bytes(negative, '1', '9', more);
  builder_.bytes(more, '0', '9', more);
  return *integer_;
}

StateId JsonRules::any_array() {
  if (array_) return *array_;
  array_ = builder_.state();
  const StateId first = builder_.state(), item = builder_.state(), after = builder_.state();
  const StateId end = builder_.final_state();
  open(*array_, '[', first);
  builder_.bytes(first, ']', ']', end);
  builder_.skip(first, item);
  builder_.call(item, value(), after);
  separator(after, ',', item);
  close(after, ']', end);
  return *array_;
}

StateId JsonRules::any_object() {
  if (object_) return *object_;
  object_ = builder_.state();
  const StateId first = builder_.state(), name = builder_.state(), colon = builder_.state();
  const StateId member = builder_.state(), after = builder_.state();
  const StateId end = builder_.final_state();
  open(*object_, '{', first);
  builder_.bytes(first, '}', '}', end);
  builder_.skip(first, name);
  builder_.call(name, string(), colon);
  separator(colon, ':', member);
  builder_.call(member, value(), after);
  separator(after, ',', name);
  close(after, '}', end);
  return *object_;
}

StateId JsonRules::value() {
  if (value_) return *value_;
  value_ = builder_.state();
  const StateId start = *value_, end = builder_.final_state();
  builder_.literal(start, "true", end);
  builder_.literal(start, "false", end);
  builder_.literal(start, "null", end);
  for (const StateId part : {number(), string(), any_array(), any_object()})
    builder_.call(start, part, end);
  return start;
}

}  // namespace optima::sampling::grammar
