// The parts of a network that every JSON grammar shares; each is made when it is first asked for.
//
// What is written is JSON as RFC 8259 has it, in this form: between tokens up to 64 bytes of space,
// none before and after the whole value; strings are UTF-8, every character may be an escape, \u
// surrogates come in pairs; an exponent is one of a double, -324 to 308, in at most three digits.
#pragma once

#include <optional>

#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

class JsonRules {
 public:
  explicit JsonRules(Builder& builder) : builder_(builder) {}

  // Starts of parts that are called.
  StateId document() { return value(); }  // any value
  StateId value();
  StateId space();
  StateId string();
  StateId character();  // one character of a string, or its escape
  StateId number();
  StateId integer();
  StateId any_array();
  StateId any_object();

  // Edges for "space, byte, space": space on a side only where asked for.
  void separator(StateId from, char byte, StateId to);  // space on both sides
  void open(StateId from, char byte, StateId to);       // space after
  void close(StateId from, char byte, StateId to);      // space before

 private:
  void exponent(StateId from, StateId to);
  void fraction(StateId from, StateId to);
  void whole_number(StateId from, StateId to);

  Builder& builder_;
  std::optional<StateId> value_, space_, string_, character_, number_, integer_, array_, object_;
};

}  // namespace optima::sampling::grammar
