// What a schema, or several that all must hold, asks of one value: the keywords of all of them
// brought together, and the choices (anyOf, oneOf) still to be made.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "sampling/grammar/number_rules.h"
#include "sampling/grammar/program.h"
#include "sampling/grammar/regex.h"
#include "sampling/grammar/text_automaton.h"

namespace optima::sampling::grammar {

inline constexpr int kDepthMax = 100;  // of references, and of constants, inside each other

// A place in the schema's text, with its JSON pointer ("#/properties/x").
struct SchemaRef {
  const json::Value* schema;
  std::string place;
};
using Conjunction = std::vector<SchemaRef>;  // all must hold; none = anything

enum Types : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFractional = 8,  // numbers that are no integers
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127,
};

struct PatternMember {
  std::shared_ptr<const TextAutomaton> names;
  SchemaRef value;
};

struct ObjectPart {  // of one schema: its names are those that its own additionalProperties leaves
  const json::Object* properties = nullptr;
  std::vector<PatternMember> patterns;
  const json::Value* additional = nullptr;
  std::string place;
};

struct ArrayPart {
  const json::Array* prefix = nullptr;
  const json::Value* items = nullptr;
  std::string place;
};

struct Choice {
  std::vector<SchemaRef> branches;
  bool only_one = false;  // oneOf
  std::string place;
};

struct Flat {
  uint8_t types = kAllTypes;
  bool impossible = false;
  bool constrained = false;                      // by anything
  std::optional<std::vector<SchemaRef>> values;  // of enum and const
  NumberRange range;
  int64_t length_min = 0, length_max = kUnlimited;
  std::vector<std::shared_ptr<const TextAutomaton>> texts;  // all of which match a string
  std::vector<ObjectPart> objects;
  std::set<std::string> required;
  int64_t members_min = 0, members_max = kUnlimited;
  std::vector<ArrayPart> arrays;
  int64_t items_min = 0, items_max = kUnlimited;
  std::vector<Choice> choices;
  std::string place;  // of the first schema
};

// Reads schemas of one document. Patterns that were compiled are kept.
class SchemaReader {
 public:
  SchemaReader(const json::Value& root, const Limits& limits) : root_(root), limits_(limits) {}

  const json::Value& root() const { return root_; }
  // Adds what `ref` asks to `flat`.
  Status add(const SchemaRef& ref, Flat& flat, int depth = 0);
  Result<Flat> flatten(const Conjunction& conjunction);
  // The target of a $ref, when the schema says nothing else; follows chains.
  Result<bool> follow(SchemaRef& ref);

  // What must hold of the member `name`, and of the item at `index`.
  Conjunction member(const Flat& flat, const std::string& name) const;
  Conjunction item(const Flat& flat, size_t index) const;

  // Whether the value satisfies all that `flat` asks, choices included.
  Result<bool> admits(const Flat& flat, const json::Value& value, int depth = 0);
  // Whether nothing can satisfy `flat`, as far as a look at the keywords shows.
  Result<bool> surely_empty(const Flat& flat, int depth = 0);

 private:
  Status add_keyword(const json::Member& member, const SchemaRef& ref, Flat& flat, int depth);
  Status add_string_keyword(const json::Member& member, const std::string& place, Flat& flat);
  Status add_number_keyword(const json::Member& member, const std::string& place, Flat& flat);
  Status add_object_keyword(const json::Member& member, const SchemaRef& ref, Flat& flat);
  Status add_array_keyword(const json::Member& member, const SchemaRef& ref, Flat& flat);
  Status add_types(const json::Value& value, const std::string& place, Flat& flat);
  Status add_values(std::vector<SchemaRef> values, Flat& flat);
  Status add_choice(const json::Member& member, const std::string& place, Flat& flat);
  Status add_all(const json::Value& value, const std::string& place, Flat& flat, int depth);
  Status add_pattern_properties(const json::Value& value, const std::string& place,
                                ObjectPart& part);
  Result<SchemaRef> resolve(const json::Value& target, const std::string& place) const;
  Result<std::shared_ptr<const TextAutomaton>> pattern(const std::string& text, RegexMatch match,
                                                       const std::string& place);
  Result<bool> admits_all(const Conjunction& conjunction, const json::Value& value, int depth);
  Result<bool> admits_choice(const Choice& choice, const json::Value& value, int depth);
  Result<bool> admits_object(const Flat& flat, const json::Object& object, int depth);

  const json::Value& root_;
  const Limits limits_;
  int64_t added_ = 0;
  std::map<std::string, std::shared_ptr<const TextAutomaton>> patterns_;
};

bool equal(const json::Value& a, const json::Value& b);  // 1 and 1.0 are
std::optional<Decimal> decimal_of(const json::Value& value);

}  // namespace optima::sampling::grammar
