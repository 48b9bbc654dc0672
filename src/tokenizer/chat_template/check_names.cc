// A walk over the whole tree, which the parser has bounded in depth.
#include "tokenizer/chat_template/check_names.h"

namespace optima::tokenizer::jinja {
namespace {

enum class Reach : uint8_t { always, perhaps };

class NameChecker {
 public:
  explicit NameChecker(const ParsedTemplate& program) : program_(program) {}

  Status check(const Body& body, Reach reach) const {
    for (const auto& statement : body) OPTIMA_TRY(check(*statement, reach));
    return {};
  }

 private:
  Status check(const Statement& node, Reach reach) const {
    OPTIMA_TRY(check(node.target, reach));
    OPTIMA_TRY(check(node.value, reach));
    OPTIMA_TRY(check(node.condition, Reach::always));
    for (const Branch& branch : node.branches) {
      OPTIMA_TRY(check(branch.condition, Reach::perhaps));
      OPTIMA_TRY(check(branch.body, Reach::perhaps));
    }
    for (const Parameter& parameter : node.parameters) {
      OPTIMA_TRY(check(parameter.otherwise, Reach::always));
    }
    for (const auto& [target, value] : node.assignments) OPTIMA_TRY(check(value, reach));
    OPTIMA_TRY(check(node.body, Reach::always));
    return check(node.otherwise, Reach::always);
  }

  Status check(const ExpressionPtr& node, Reach reach) const {
    if (node == nullptr) return {};
    if (node->kind == ExpressionKind::conditional) reach = Reach::perhaps;
    const bool is_filter = node->kind == ExpressionKind::filter;
    const bool is_test = node->kind == ExpressionKind::test;
    const bool is_unknown =
        (is_filter && !has_filter(node->text)) || (is_test && !has_test(node->text));
    if (is_unknown && reach == Reach::always) {
      return {Code::invalid_argument,
              text("template: ", place_in(program_.source, node->at), ": no ",
                   is_filter ? "filter" : "test", " named '", node->text, "'")};
    }
    for (const ExpressionPtr& part : node->parts) OPTIMA_TRY(check(part, reach));
    return {};
  }

  const ParsedTemplate& program_;
};

}  // namespace

Status check_names(const ParsedTemplate& program) {
  return NameChecker(program).check(program.body, Reach::always);
}

}  // namespace optima::tokenizer::jinja
