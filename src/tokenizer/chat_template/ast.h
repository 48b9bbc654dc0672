// The parsed template. Nodes carry the byte of the source where they begin, for messages; names
// are numbered once so that scopes compare numbers.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/value.h"

namespace optima::tokenizer::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<std::unique_ptr<Statement>>;

enum class ExpressionKind : uint8_t {
  constant,
  name,
  list,        // parts
  tuple,       // parts
  dict,        // parts: key, value, key, value…
  chain,       // parts joined by operators of one precedence, from left to right
  comparison,  // parts joined by comparisons: a < b < c
  negation,    // not
  minus,
  plus,
  conditional,  // parts: value, condition, otherwise (may be null)
  attribute,    // parts: object; text: the attribute
  item,         // parts: object, key
  slice,        // parts: object, start, stop, step (each of the last three may be null)
  call,         // parts: callee, arguments…
  filter,       // parts: input (null in a filter block), arguments…
  test,         // parts: input, arguments…
};

// How an argument of a call is given.
enum class Passing : uint8_t { positional, named, spread_list, spread_dict };

struct ArgumentMark {
  Passing passing = Passing::positional;
  std::string name;  // of a named argument
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  uint32_t at = 0;
  uint32_t symbol = 0;  // of a name
  int32_t height = 1;   // of the tree below
  std::string text;     // name, attribute, filter or test
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;  // operators[i] stands before parts[i + 1]
  std::vector<ArgumentMark> marks;  // of the arguments of a call, filter or test
};

enum class StatementKind : uint8_t {
  text,
  output,
  branch,
  loop,
  assign,
  assign_block,
  macro,
  filter_block,
  scope_block,  // {% generation %}, and {% with %} with its assignments
  loop_break,
  loop_continue,
};

struct Branch {
  ExpressionPtr condition;  // null = else
  Body body;
};

struct Parameter {
  uint32_t symbol = 0;
  std::string name;
  ExpressionPtr otherwise;  // null = undefined when not given
};

struct Statement {
  StatementKind kind = StatementKind::text;
  uint32_t at = 0;
  uint32_t symbol = 0;      // of a macro
  std::string text;         // the plain text, or the macro's name
  ExpressionPtr target;     // assigned to
  ExpressionPtr value;      // printed, assigned, looped over, or the chain of filters
  ExpressionPtr condition;  // of a loop
  Body body;
  Body otherwise;  // of a loop without turns
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> assignments;  // of {% with %}
  bool takes_more_positional = false;  // the macro's body mentions varargs
  bool takes_more_named = false;       // … kwargs
};

// Everything a rendering needs of a template; immutable once parsed.
struct ParsedTemplate {
  std::string source;  // line ends normalised
  Heap constants{INT64_MAX / 2};
  std::unordered_map<std::string, uint32_t> symbols;
  std::vector<const std::string*> symbol_names;
  Body body;
  uint32_t loop_symbol = 0, varargs_symbol = 0, kwargs_symbol = 0;

  uint32_t symbol(const std::string& name) {
    const auto [place, is_new] = symbols.emplace(name, static_cast<uint32_t>(symbol_names.size()));
    if (is_new) symbol_names.push_back(&place->first);
    return place->second;
  }
};

// Errors name line and column.
Status parse_template(std::string_view source, ParsedTemplate& out);

}  // namespace optima::tokenizer::jinja
