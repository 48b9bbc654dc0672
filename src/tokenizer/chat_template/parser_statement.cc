// Statements, and the check of names of filters and tests once the tree is complete.
#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/chat_template/check_names.h"
#include "tokenizer/chat_template/parser.h"

namespace optima::tokenizer::jinja {
namespace {

constexpr int32_t kDepthMax =
    250;  // nested parser functions; an expression in brackets takes three
constexpr size_t kSourceBytesMax = 4 << 20;

}  // namespace

Status Parser::fail(const Token& token, std::string_view what) const {
  return {Code::invalid_argument,
          text("template: ", place_in(program_.source, token.at), ": ", what)};
}

Status Parser::fail_here(std::string_view expected) const {
  const Token& token = now();
  switch (token.kind) {
    case TokenKind::end:
      return fail(token, text("expected ", expected, ", got the end of the template"));
    case TokenKind::output_end:
    case TokenKind::block_end:
      return fail(token, text("expected ", expected, ", got the end of the tag"));
    default: {
      constexpr size_t kShownMax = 40;
      std::string shown = token.text.substr(0, kShownMax);
      shown.resize(utf8_valid_prefix(shown));
      return fail(token, text("expected ", expected, ", got '", shown, "'"));
    }
  }
}

const Token& Parser::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::is_symbol(std::string_view text) const {
  return now().kind == TokenKind::symbol && now().text == text;
}

bool Parser::is_name(std::string_view text) const {
  return now().kind == TokenKind::name && now().text == text;
}

bool Parser::skip_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  take();
  return true;
}

Status Parser::expect_symbol(std::string_view symbol) {
  if (skip_symbol(symbol)) return {};
  return fail_here(text("'", symbol, "'"));
}

Result<std::string> Parser::expect_name() {
  if (now().kind != TokenKind::name) return fail_here("a name");
  return take().text;
}

Status Parser::enter() {
  if (++depth_ <= kDepthMax) return {};
  return fail(now(), text("nested deeper than the limit of ", kDepthMax));
}

Status Parser::parse() {
  OPTIMA_TRY(body(program_.body, {}));
  program_.loop_symbol = program_.symbol("loop");
  program_.varargs_symbol = program_.symbol("varargs");
  program_.kwargs_symbol = program_.symbol("kwargs");
  return check_names(program_);
}

// Statements up to one of the tags `ends`, which is left as the next token.
Status Parser::body(Body& out, std::initializer_list<std::string_view> ends) {
  OPTIMA_TRY(enter());
  while (now().kind != TokenKind::end) {
    if (now().kind != TokenKind::block_begin) {
      OPTIMA_TRY(plain_text(out));
      continue;
    }
    take();
    if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return is_name(end); })) {
      --depth_;
      return {};
    }
    OPTIMA_TRY(statement(out));
  }
  --depth_;
  if (ends.size() == 0) return {};
  return fail(now(), text("the tag '", *(ends.end() - 1), "' is missing"));
}

// The rest of a tag, and the body that it opens.
Status Parser::tagged_body(Body& out, std::initializer_list<std::string_view> ends) {
  skip_symbol(":");
  if (now().kind != TokenKind::block_end) return fail_here("the end of the tag");
  take();
  return body(out, ends);
}

Status Parser::closed_body(Statement& node, std::string_view end) {
  OPTIMA_TRY(tagged_body(node.body, {end}));
  take();
  return {};
}

// Text or an output tag.
Status Parser::plain_text(Body& out) {
  auto node = std::make_unique<Statement>();
  node->at = now().at;
  if (now().kind == TokenKind::text) {
    node->text = take().text;
  } else {
    node->kind = StatementKind::output;
    take();
    OPTIMA_ASSIGN(node->value, tuple({}));
    if (now().kind != TokenKind::output_end) return fail_here("'}}'");
    take();
  }
  out.push_back(std::move(node));
  return {};
}

Status Parser::statement(Body& out) {
  const Token& tag = now();
  auto node = std::make_unique<Statement>();
  node->at = tag.at;
  OPTIMA_ASSIGN(const std::string word, expect_name());
  if (word == "if") {
    OPTIMA_TRY(parse_if(*node));
  } else if (word == "for") {
    OPTIMA_TRY(parse_for(*node));
  } else if (word == "set") {
    OPTIMA_TRY(parse_set(*node));
  } else if (word == "macro") {
    OPTIMA_TRY(parse_macro(*node));
  } else if (word == "with") {
    OPTIMA_TRY(parse_with(*node));
  } else if (word == "generation") {
    node->kind = StatementKind::scope_block;
    const int32_t outer_loops = std::exchange(loops_, 0);
    OPTIMA_TRY(closed_body(*node, "endgeneration"));
    loops_ = outer_loops;
  } else if (word == "filter") {
    node->kind = StatementKind::filter_block;
    OPTIMA_ASSIGN(node->value, filter(nullptr));
    while (skip_symbol("|")) {
      OPTIMA_ASSIGN(node->value, filter(std::move(node->value)));
    }
    OPTIMA_TRY(closed_body(*node, "endfilter"));
  } else if (word == "break" || word == "continue") {
    if (loops_ == 0) return fail(tag, text("'", word, "' outside of a loop"));
    node->kind = word == "break" ? StatementKind::loop_break : StatementKind::loop_continue;
  } else {
    return fail(tag, text("unknown tag '", word, "'"));
  }
  if (now().kind != TokenKind::block_end) return fail_here("'%}'");
  take();
  out.push_back(std::move(node));
  return {};
}

Status Parser::parse_if(Statement& node) {
  node.kind = StatementKind::branch;
  while (true) {
    node.branches.emplace_back();
    OPTIMA_ASSIGN(node.branches.back().condition, tuple({.items = Items::no_conditional}));
    OPTIMA_TRY(tagged_body(node.branches.back().body, {"elif", "else", "endif"}));
    const std::string end = take().text;
    if (end == "elif") continue;
    if (end == "else") {
      node.branches.emplace_back();
      OPTIMA_TRY(tagged_body(node.branches.back().body, {"endif"}));
      take();
    }
    return {};
  }
}

Status Parser::parse_for(Statement& node) {
  node.kind = StatementKind::loop;
  const Token& first = now();
  OPTIMA_ASSIGN(node.target, target({.items = Items::names, .end_name = "in"}));
  const auto is_loop = [](const ExpressionPtr& part) { return part->text == "loop"; };
  if (is_loop(node.target) ||
      std::any_of(node.target->parts.begin(), node.target->parts.end(), is_loop)) {
    return fail(first, "'loop' cannot be the target of a loop");
  }
  if (!skip_name("in")) return fail_here("'in'");
  OPTIMA_ASSIGN(node.value, tuple({.items = Items::no_conditional, .end_name = "recursive"}));
  if (skip_name("if")) {
    OPTIMA_ASSIGN(node.condition, expression());
  }
  if (is_name("recursive")) return fail(now(), "recursive loops are not supported");
  ++loops_;
  OPTIMA_TRY(tagged_body(node.body, {"endfor", "else"}));
  --loops_;
  if (take().text == "else") {
    OPTIMA_TRY(tagged_body(node.otherwise, {"endfor"}));
    take();
  }
  return {};
}

Status Parser::parse_set(Statement& node) {
  node.kind = StatementKind::assign;
  OPTIMA_ASSIGN(node.target, target({.items = Items::names_and_attributes}));
  if (skip_symbol("=")) {
    OPTIMA_ASSIGN(node.value, tuple({}));
    return {};
  }
  node.kind = StatementKind::assign_block;
  while (skip_symbol("|")) {
    OPTIMA_ASSIGN(node.value, filter(std::move(node.value)));
  }
  return closed_body(node, "endset");
}

Status Parser::parse_macro(Statement& node) {
  node.kind = StatementKind::macro;
  OPTIMA_ASSIGN(node.text, expect_name());
  node.symbol = program_.symbol(node.text);
  OPTIMA_TRY(expect_symbol("("));
  macros_.push_back(&node);
  std::unordered_set<std::string> names;
  while (!is_symbol(")")) {
    if (!node.parameters.empty()) OPTIMA_TRY(expect_symbol(","));
    const Token& token = now();
    Parameter parameter;
    OPTIMA_ASSIGN(parameter.name, expect_name());
    parameter.symbol = program_.symbol(parameter.name);
    if (skip_symbol("=")) {
      OPTIMA_ASSIGN(parameter.otherwise, expression());
    } else if (!node.parameters.empty() && node.parameters.back().otherwise != nullptr) {
      return fail(token, "a parameter without default after one with");
    }
    if (!names.insert(parameter.name).second) {
      return fail(token, "a parameter's name appears twice");
    }
    node.parameters.push_back(std::move(parameter));
  }
  take();
  const int32_t outer_loops = std::exchange(loops_, 0);
  OPTIMA_TRY(closed_body(node, "endmacro"));
  loops_ = outer_loops;
  macros_.pop_back();
  return {};
}

Status Parser::parse_with(Statement& node) {
  node.kind = StatementKind::scope_block;
  while (now().kind != TokenKind::block_end) {
    if (!node.assignments.empty()) OPTIMA_TRY(expect_symbol(","));
    OPTIMA_ASSIGN(ExpressionPtr left, target({.items = Items::names}));
    OPTIMA_TRY(expect_symbol("="));
    OPTIMA_ASSIGN(ExpressionPtr right, expression());
    node.assignments.emplace_back(std::move(left), std::move(right));
  }
  return closed_body(node, "endwith");
}

Result<ExpressionPtr> Parser::target(const TupleRule& rule) {
  OPTIMA_ASSIGN(ExpressionPtr node, tuple(rule));
  OPTIMA_TRY(check_target(*node));
  return node;
}

Status Parser::check_target(const Expression& node) const {
  const bool is_attribute =
      node.kind == ExpressionKind::attribute && node.parts[0]->kind == ExpressionKind::name;
  if (node.kind == ExpressionKind::name || is_attribute) return {};
  if (node.kind != ExpressionKind::tuple) {
    Token token;
    token.at = node.at;
    return fail(token, "this cannot be assigned to");
  }
  for (const ExpressionPtr& part : node.parts) OPTIMA_TRY(check_target(*part));
  return {};
}

Status parse_template(std::string_view source, ParsedTemplate& out) {
  if (source.size() > kSourceBytesMax) {
    return {Code::invalid_argument,
            text("template: ", source.size(), " bytes; the limit is ", kSourceBytesMax),
            {.wanted = static_cast<int64_t>(source.size()), .limit = kSourceBytesMax}};
  }
  if (const size_t valid = utf8_valid_prefix(source); valid != source.size()) {
    return {Code::invalid_argument, text("template: ", place_in(source, valid), ": invalid UTF-8")};
  }
  out.source = normalise_source(source);
  OPTIMA_ASSIGN(std::vector<Token> tokens, tokenize(out.source));
  return Parser(std::move(tokens), out).parse();
}

}  // namespace optima::tokenizer::jinja
