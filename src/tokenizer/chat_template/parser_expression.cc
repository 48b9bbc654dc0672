// Expressions, by precedence climbing: one function handles all binary operators, so that a level
// of nesting costs few stack frames. Operators of one precedence in a row become one node.
#include <algorithm>

#include "tokenizer/chat_template/parser.h"

namespace optima::tokenizer::jinja {
namespace {

constexpr int32_t kHeightMax = 200;  // of an expression's tree; evaluation recurses that deep

// Precedences of binary operators, loosest first; `not` stands between `and` and comparisons.
enum Precedence : int { kOr = 1, kAnd, kNot, kCompare, kAdd, kConcatenate, kMultiply, kPower };

struct BinaryOperator {
  std::string_view text;
  Operator op;
  int precedence;
};

constexpr BinaryOperator kSymbols[] = {
    {"==", Operator::equal, kCompare},
    {"!=", Operator::not_equal, kCompare},
    {"<", Operator::less, kCompare},
    {"<=", Operator::less_equal, kCompare},
    {">", Operator::greater, kCompare},
    {">=", Operator::greater_equal, kCompare},
    {"+", Operator::add, kAdd},
    {"-", Operator::subtract, kAdd},
    {"~", Operator::concatenate, kConcatenate},
    {"*", Operator::multiply, kMultiply},
    {"/", Operator::divide, kMultiply},
    {"//", Operator::floor_divide, kMultiply},
    {"%", Operator::modulo, kMultiply},
    {"**", Operator::power, kPower},
};
constexpr BinaryOperator kWords[] = {
    {"or", Operator::logical_or, kOr},
    {"and", Operator::logical_and, kAnd},
    {"in", Operator::in, kCompare},
    {"not", Operator::not_in, kCompare},  // only before `in`
};

const BinaryOperator* find_operator(const Token& token, const Token& ahead) {
  if (token.kind == TokenKind::symbol) {
    for (const BinaryOperator& entry : kSymbols) {
      if (entry.text == token.text) return &entry;
    }
  }
  if (token.kind == TokenKind::name) {
    for (const BinaryOperator& entry : kWords) {
      if (entry.text != token.text) continue;
      const bool is_not_in = ahead.kind == TokenKind::name && ahead.text == "in";
      return entry.op == Operator::not_in && !is_not_in ? nullptr : &entry;
    }
  }
  return nullptr;
}

}  // namespace

ExpressionPtr Parser::make(ExpressionKind kind, uint32_t at) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->at = at;
  return node;
}

Result<ExpressionPtr> Parser::finish(ExpressionPtr node) const {
  for (const ExpressionPtr& part : node->parts) {
    if (part != nullptr) node->height = std::max(node->height, part->height + 1);
  }
  if (node->height > kHeightMax) return too_high();
  return node;
}

Status Parser::too_high() const {
  return fail(now(), text("an expression nested deeper than ", kHeightMax));
}

Result<ExpressionPtr> Parser::expression() {
  OPTIMA_TRY(enter());
  OPTIMA_ASSIGN(ExpressionPtr value, binary(kOr));
  while (is_name("if")) {
    ExpressionPtr node = make(ExpressionKind::conditional, take().at);
    OPTIMA_ASSIGN(ExpressionPtr condition, binary(kOr));
    ExpressionPtr otherwise;
    if (skip_name("else")) {
      OPTIMA_ASSIGN(otherwise, expression());
    }
    node->parts.push_back(std::move(value));
    node->parts.push_back(std::move(condition));
    node->parts.push_back(std::move(otherwise));
    OPTIMA_ASSIGN(value, finish(std::move(node)));
  }
  --depth_;
  return value;
}

Result<ExpressionPtr> Parser::binary(int precedence) {
  OPTIMA_TRY(enter());
  OPTIMA_ASSIGN(ExpressionPtr left, operand(precedence));
  bool is_open = false;  // `left` is a node of this loop, to which more may be added
  while (const BinaryOperator* const found = find_operator(now(), ahead())) {
    if (found->precedence < precedence) break;
    const uint32_t at = take().at;
    if (found->op == Operator::not_in) take();
    OPTIMA_ASSIGN(ExpressionPtr right, binary(found->precedence + 1));
    const auto kind =
        found->precedence == kCompare ? ExpressionKind::comparison : ExpressionKind::chain;
    const auto precedence_of = [](Operator op) -> int {
      for (const BinaryOperator& entry : kSymbols) {
        if (entry.op == op) return entry.precedence;
      }
      return op == Operator::logical_or ? kOr : op == Operator::logical_and ? kAnd : kCompare;
    };
    if (!is_open || precedence_of(left->operators.front()) != found->precedence) {
      ExpressionPtr node = make(kind, at);
      node->parts.push_back(std::move(left));
      left = std::move(node);
      is_open = true;
    }
    left->height = std::max({left->height, left->parts[0]->height + 1, right->height + 1});
    left->operators.push_back(found->op);
    left->parts.push_back(std::move(right));
    if (left->height > kHeightMax) return too_high();
  }
  --depth_;
  return left;
}

Result<ExpressionPtr> Parser::operand(int precedence) {
  if (precedence <= kNot && is_name("not")) {
    ExpressionPtr node = make(ExpressionKind::negation, take().at);
    OPTIMA_ASSIGN(ExpressionPtr part, binary(kNot));
    node->parts.push_back(std::move(part));
    return finish(std::move(node));
  }
  return unary(Filters::with);
}

Result<ExpressionPtr> Parser::unary(Filters filters) {
  ExpressionPtr node;
  if (is_symbol("-") || is_symbol("+")) {
    OPTIMA_TRY(enter());
    node = make(is_symbol("-") ? ExpressionKind::minus : ExpressionKind::plus, now().at);
    take();
    OPTIMA_ASSIGN(ExpressionPtr part, unary(Filters::without));
    node->parts.push_back(std::move(part));
    OPTIMA_ASSIGN(node, finish(std::move(node)));
    --depth_;
  } else {
    OPTIMA_ASSIGN(node, primary(Items::any));
  }
  OPTIMA_ASSIGN(node, postfix(std::move(node)));
  if (filters == Filters::without) return node;
  return filters_and_tests(std::move(node));
}

Result<ExpressionPtr> Parser::primary(Items items) {
  const Token& token = now();
  ExpressionPtr node = make(ExpressionKind::constant, token.at);
  switch (token.kind) {
    case TokenKind::name:
      return name(items);
    case TokenKind::string:
      return string_constant();
    case TokenKind::integer:
      node->constant = Value::integer(take().integer);
      return node;
    case TokenKind::real:
      node->constant = Value::real(take().real);
      return node;
    default:
      break;
  }
  if (skip_symbol("(")) {
    OPTIMA_ASSIGN(node, tuple({.items = Items::any, .in_parentheses = true}));
    OPTIMA_TRY(expect_symbol(")"));
    return node;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return dict();
  return fail_here("an expression");
}

Result<ExpressionPtr> Parser::name(Items items) {
  const Token& token = take();
  ExpressionPtr node = make(ExpressionKind::constant, token.at);
  if (token.text == "true" || token.text == "True" || token.text == "false" ||
      token.text == "False") {
    node->constant = Value::boolean(token.text == "true" || token.text == "True");
    return node;
  }
  if (token.text == "none" || token.text == "None") {
    node->constant = Value::none();
    return node;
  }
  node->kind = ExpressionKind::name;
  node->text = token.text;
  node->symbol = program_.symbol(token.text);
  if (!macros_.empty()) {
    if (token.text == "varargs") macros_.back()->takes_more_positional = true;
    if (token.text == "kwargs") macros_.back()->takes_more_named = true;
  }
  if (items != Items::names_and_attributes || !is_symbol(".")) return node;
  ExpressionPtr attribute = make(ExpressionKind::attribute, take().at);
  OPTIMA_ASSIGN(attribute->text, expect_name());
  attribute->parts.push_back(std::move(node));
  return finish(std::move(attribute));
}

Result<ExpressionPtr> Parser::string_constant() {
  ExpressionPtr node = make(ExpressionKind::constant, now().at);
  std::string joined;  // strings in a row are one
  while (now().kind == TokenKind::string) joined += take().text;
  node->constant = program_.constants.string(std::move(joined));
  node->constant.object()->shared = true;
  return node;
}

Result<ExpressionPtr> Parser::tuple(const TupleRule& rule) {
  OPTIMA_TRY(enter());
  ExpressionPtr node = make(ExpressionKind::tuple, now().at);
  bool has_comma = false;
  while (true) {
    const bool at_end = now().kind == TokenKind::output_end || now().kind == TokenKind::block_end ||
                        is_symbol(")") || (!rule.end_name.empty() && is_name(rule.end_name));
    if (at_end) break;
    ExpressionPtr part;
    if (rule.items == Items::any) {
      OPTIMA_ASSIGN(part, expression());
    } else if (rule.items == Items::no_conditional) {
      OPTIMA_ASSIGN(part, binary(kOr));
    } else {
      OPTIMA_ASSIGN(part, primary(rule.items));
    }
    node->parts.push_back(std::move(part));
    if (!skip_symbol(",")) break;
    has_comma = true;
  }
  --depth_;
  if (!has_comma && node->parts.size() == 1) return std::move(node->parts[0]);
  if (!has_comma && !rule.in_parentheses) return fail_here("an expression");
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::list() {
  ExpressionPtr node = make(ExpressionKind::list, take().at);
  while (!is_symbol("]")) {
    if (!node->parts.empty()) OPTIMA_TRY(expect_symbol(","));
    if (is_symbol("]")) break;
    OPTIMA_ASSIGN(ExpressionPtr part, expression());
    node->parts.push_back(std::move(part));
  }
  take();
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::dict() {
  ExpressionPtr node = make(ExpressionKind::dict, take().at);
  while (!is_symbol("}")) {
    if (!node->parts.empty()) OPTIMA_TRY(expect_symbol(","));
    if (is_symbol("}")) break;
    OPTIMA_ASSIGN(ExpressionPtr key, expression());
    OPTIMA_TRY(expect_symbol(":"));
    OPTIMA_ASSIGN(ExpressionPtr value, expression());
    node->parts.push_back(std::move(key));
    node->parts.push_back(std::move(value));
  }
  take();
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::postfix(ExpressionPtr node) {
  while (true) {
    if (is_symbol(".") || is_symbol("[")) {
      OPTIMA_ASSIGN(node, subscript(std::move(node)));
    } else if (is_symbol("(")) {
      ExpressionPtr call = make(ExpressionKind::call, now().at);
      call->parts.push_back(std::move(node));
      OPTIMA_TRY(arguments(*call));
      OPTIMA_ASSIGN(node, finish(std::move(call)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> Parser::filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (skip_symbol("|")) {
      OPTIMA_ASSIGN(node, filter(std::move(node)));
    } else if (is_name("is")) {
      OPTIMA_ASSIGN(node, test(std::move(node)));
    } else if (is_symbol("(")) {
      OPTIMA_ASSIGN(node, postfix(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> Parser::filter(ExpressionPtr input) {
  ExpressionPtr node = make(ExpressionKind::filter, now().at);
  OPTIMA_ASSIGN(node->text, expect_name());
  node->parts.push_back(std::move(input));
  if (is_symbol("(")) OPTIMA_TRY(arguments(*node));
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::test(ExpressionPtr input) {
  take();  // is
  const uint32_t at = now().at;
  const bool is_negated = skip_name("not");
  ExpressionPtr node = make(ExpressionKind::test, now().at);
  OPTIMA_ASSIGN(node->text, expect_name());
  node->parts.push_back(std::move(input));
  const TokenKind kind = now().kind;
  if (is_symbol("(")) {
    OPTIMA_TRY(arguments(*node));
  } else if (is_name("is")) {
    return fail(now(), "tests cannot be chained with 'is'");
  } else if ((kind == TokenKind::name && !is_name("else") && !is_name("or") && !is_name("and")) ||
             kind == TokenKind::string || kind == TokenKind::integer || kind == TokenKind::real ||
             is_symbol("[") || is_symbol("{")) {
    // One argument may stand without parentheses.
    OPTIMA_ASSIGN(ExpressionPtr part, primary(Items::any));
    OPTIMA_ASSIGN(part, postfix(std::move(part)));
    node->parts.push_back(std::move(part));
    node->marks.emplace_back();
  }
  OPTIMA_ASSIGN(node, finish(std::move(node)));
  if (!is_negated) return node;
  ExpressionPtr negation = make(ExpressionKind::negation, at);
  negation->parts.push_back(std::move(node));
  return finish(std::move(negation));
}

Result<ExpressionPtr> Parser::subscript(ExpressionPtr object) {
  const uint32_t at = now().at;
  if (skip_symbol(".")) {
    ExpressionPtr node = make(ExpressionKind::attribute, at);
    if (now().kind == TokenKind::integer) {
      node->kind = ExpressionKind::item;
      ExpressionPtr key = make(ExpressionKind::constant, now().at);
      key->constant = Value::integer(take().integer);
      node->parts.push_back(std::move(object));
      node->parts.push_back(std::move(key));
      return finish(std::move(node));
    }
    OPTIMA_ASSIGN(node->text, expect_name());
    node->parts.push_back(std::move(object));
    return finish(std::move(node));
  }
  take();  // [
  OPTIMA_ASSIGN(ExpressionPtr node, subscript_part(object, at));
  if (!is_symbol(",")) {
    OPTIMA_TRY(expect_symbol("]"));
    return node;
  }
  if (node->kind != ExpressionKind::item) return fail_here("']'");
  // x[1, 2] looks up a tuple.
  ExpressionPtr key = make(ExpressionKind::tuple, at);
  key->parts.push_back(std::move(node->parts[1]));
  while (skip_symbol(",")) {
    OPTIMA_ASSIGN(ExpressionPtr part, expression());
    key->parts.push_back(std::move(part));
  }
  OPTIMA_TRY(expect_symbol("]"));
  OPTIMA_ASSIGN(node->parts[1], finish(std::move(key)));
  return finish(std::move(node));
}

// An index or a slice of `object`, up to the closing bracket or a comma.
Result<ExpressionPtr> Parser::subscript_part(ExpressionPtr& object, uint32_t at) {
  ExpressionPtr start;
  if (!is_symbol(":")) {
    OPTIMA_ASSIGN(start, expression());
    if (!is_symbol(":")) {
      ExpressionPtr node = make(ExpressionKind::item, at);
      node->parts.push_back(std::move(object));
      node->parts.push_back(std::move(start));
      return finish(std::move(node));
    }
  }
  ExpressionPtr node = make(ExpressionKind::slice, at);
  node->parts.push_back(std::move(object));
  node->parts.push_back(std::move(start));
  for (int i = 0; i < 2; ++i) {
    ExpressionPtr part;
    if ((i == 0 || is_symbol(":")) && skip_symbol(":") && !is_symbol(":") && !is_symbol("]")) {
      OPTIMA_ASSIGN(part, expression());
    }
    node->parts.push_back(std::move(part));
  }
  return finish(std::move(node));
}

Status Parser::arguments(Expression& call) {
  OPTIMA_TRY(expect_symbol("("));
  ArgumentOrder order;
  while (!is_symbol(")")) {
    OPTIMA_TRY(argument(call, order));
    if (is_symbol(")")) break;
    OPTIMA_TRY(expect_symbol(","));
  }
  take();
  return {};
}

Status Parser::argument(Expression& call, ArgumentOrder& order) {
  const Token& first = now();
  ArgumentMark mark;
  bool is_allowed = order.last != Passing::spread_dict;
  if (skip_symbol("*")) {
    mark.passing = Passing::spread_list;
    is_allowed = is_allowed && !order.has_list;
    order.has_list = true;
  } else if (skip_symbol("**")) {
    mark.passing = Passing::spread_dict;
  } else if (now().kind == TokenKind::name && ahead().kind == TokenKind::symbol &&
             ahead().text == "=") {
    mark = {Passing::named, take().text};
    take();
    is_allowed = order.names.insert(mark.name).second && is_allowed;
  } else {
    is_allowed = is_allowed && order.names.empty() && !order.has_list;
  }
  if (!is_allowed) return fail(first, "arguments of a call in the wrong order, or a name twice");
  order.last = mark.passing;
  OPTIMA_ASSIGN(ExpressionPtr part, expression());
  call.parts.push_back(std::move(part));
  call.marks.push_back(std::move(mark));
  return {};
}

}  // namespace optima::tokenizer::jinja
