// The parser, in two files: expressions and statements.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/lexer.h"

namespace optima::tokenizer::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, ParsedTemplate& program)
      : tokens_(std::move(tokens)), program_(program) {}

  Status parse();

 private:
  // What a comma-separated list without brackets may hold.
  enum class Items : uint8_t { any, no_conditional, names, names_and_attributes };
  struct TupleRule {
    Items items = Items::any;
    bool in_parentheses = false;
    std::string_view end_name = {};  // a name that ends the list
  };

  Status fail(const Token& token, std::string_view what) const;
  Status fail_here(std::string_view expected) const;
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take();
  bool is_symbol(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool skip_symbol(std::string_view text);
  bool skip_name(std::string_view text);
  Status expect_symbol(std::string_view text);
  Result<std::string> expect_name();
  Status enter();

  // parser_expression.cc
  ExpressionPtr make(ExpressionKind kind, uint32_t at) const;
  Result<ExpressionPtr> finish(ExpressionPtr node) const;  // checks the height of the tree
  Status too_high() const;
  Result<ExpressionPtr> expression();
  Result<ExpressionPtr> binary(int precedence);
  Result<ExpressionPtr> operand(int precedence);
  enum class Filters : uint8_t { with, without };
  Result<ExpressionPtr> unary(Filters filters);
  Result<ExpressionPtr> primary(Items items);
  Result<ExpressionPtr> name(Items items);
  Result<ExpressionPtr> string_constant();
  Result<ExpressionPtr> tuple(const TupleRule& rule);
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();
  Result<ExpressionPtr> postfix(ExpressionPtr node);
  Result<ExpressionPtr> filters_and_tests(ExpressionPtr node);
  Result<ExpressionPtr> filter(ExpressionPtr input);
  Result<ExpressionPtr> test(ExpressionPtr input);
  Result<ExpressionPtr> subscript(ExpressionPtr object);
  Result<ExpressionPtr> subscript_part(ExpressionPtr& object, uint32_t at);
  Status arguments(Expression& call);
  struct ArgumentOrder {  // of the arguments of a call so far
    Passing last = Passing::positional;
    bool has_list = false;
    std::unordered_set<std::string> names;
  };
  Status argument(Expression& call, ArgumentOrder& order);

  // parser_statement.cc
  Status body(Body& out, std::initializer_list<std::string_view> ends);
  Status tagged_body(Body& out, std::initializer_list<std::string_view> ends);
  Status plain_text(Body& out);
  Status statement(Body& out);
  Status parse_if(Statement& node);
  Status parse_for(Statement& node);
  Status parse_set(Statement& node);
  Status parse_macro(Statement& node);
  Status parse_with(Statement& node);
  Status closed_body(Statement& node, std::string_view end);
  Result<ExpressionPtr> target(const TupleRule& rule);
  Status check_target(const Expression& node) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  ParsedTemplate& program_;
  int32_t depth_ = 0;
  int32_t loops_ = 0;               // loops around the statement at hand
  std::vector<Statement*> macros_;  // macros around it
};

}  // namespace optima::tokenizer::jinja
