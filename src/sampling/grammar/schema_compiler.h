// From what schemas ask (schema_flat.h) to a network.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sampling/grammar/json_rules.h"
#include "sampling/grammar/schema_flat.h"
#include "sampling/grammar/text_automaton.h"

namespace optima::sampling::grammar {

class SchemaCompiler {
 public:
  SchemaCompiler(SchemaReader& reader, Builder& builder)
      : reader_(reader),
        builder_(builder),
        rules_(builder),
        text_(builder, TextEncoding::json_plain) {}

  // The start of a part for the values that satisfy all of `conjunction`.
  Result<StateId> whole(const Conjunction& conjunction);
  Result<StateId> whole(const Flat& flat);

 private:
  struct Part {
    StateId start;
    Conjunction conjunction;
  };

  Status finish_parts();
  StateId part_of(const Conjunction& conjunction);
  // Each adds edges from `from` to `to`.
  Status all(const Conjunction& conjunction, StateId from, StateId to);
  Status flat(const Flat& flat, StateId from, StateId to);
  Status choose(Flat flat, StateId from, StateId to);
  Status branch(const Flat& rest, const SchemaRef& branch, StateId from, StateId to);
  Status check_only_one(const Flat& rest, const Choice& choice);
  Result<bool> is_empty_together(const Flat& rest, const SchemaRef& a, const SchemaRef& b);
  Status constants(const Flat& flat, StateId from, StateId to);
  void constant(const json::Value& value, StateId from, StateId to);
  void constant_number(const Decimal& value, StateId from, StateId to);
  void constant_array(const json::Array& array, StateId from, StateId to);
  void constant_object(const json::Object& object, StateId from, StateId to);
  void number(const Flat& flat, StateId from, StateId to);
  Status string(const Flat& flat, StateId from, StateId to);
  Status array(const Flat& flat, StateId from, StateId to);
  Status object(const Flat& flat, StateId from, StateId to);
  Status other_members(const Flat& flat, const std::vector<std::string>& names, Object& object);
  Status other_member(const Flat& flat, const TextAutomaton& names, uint32_t matched,
                      Object& object);
  Object braces(StateId close_target);
  Status check_counts(const Flat& flat, Object& object) const;

  SchemaReader& reader_;
  Builder& builder_;
  JsonRules rules_;
  TextWriter text_;
  std::map<std::vector<const json::Value*>, StateId> parts_;
  std::vector<Part> open_;  // parts with a start, and nothing behind it yet
  int64_t branches_ = 0, comparisons_ = 0;
  int64_t nesting_ = 0, comparing_ = 0;  // on the stack now
};

}  // namespace optima::sampling::grammar
