// Runs a parsed template: one object per rendering.
#pragma once

#include <string>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/loop.h"
#include "tokenizer/chat_template/operators.h"

namespace optima::tokenizer::jinja {

class Evaluator {
 public:
  // `scope` holds the input variables; assignments at the top of the template go there too.
  Evaluator(const ParsedTemplate& program, Runtime& runtime, Value scope)
      : program_(program), runtime_(runtime), scope_(std::move(scope)) {}

  Result<std::string> run();

 private:
  friend class ForSource;
  enum class Flow : uint8_t { normal, stop, next };  // what a statement says to the loop around it

  // Makes `inner` the scope in force while it lives.
  class ScopeGuard {
   public:
    ScopeGuard(Evaluator& evaluator, Value inner)
        : evaluator_(evaluator), outer_(std::exchange(evaluator.scope_, std::move(inner))) {}
    ~ScopeGuard() { evaluator_.scope_ = std::move(outer_); }
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

   private:
    Evaluator& evaluator_;
    Value outer_;
  };

  Scope& scope() const { return *static_cast<Scope*>(scope_.object()); }
  Value new_scope(const Value& outer) {
    return runtime_.heap.adopt(new Scope(outer), sizeof(Scope));
  }

  // evaluator_expression.cc
  Result<Value> evaluate(const Expression& node);
  Result<Value> evaluate_part(const Expression& node, size_t index);  // missing if it is null
  Result<Value> dispatch(const Expression& node);
  Value look_up(const Expression& node) const;
  Result<Value> evaluate_list(const Expression& node, Flavor flavor);
  Result<Value> evaluate_dict(const Expression& node);
  Result<Value> evaluate_chain(const Expression& node);
  Result<Value> evaluate_concatenation(const Expression& node);
  Result<Value> evaluate_comparison(const Expression& node);
  Result<Value> evaluate_sign(const Expression& node);
  Result<Value> evaluate_conditional(const Expression& node);
  Result<Value> evaluate_item(const Expression& node);
  Result<Value> evaluate_slice(const Expression& node);
  Result<Value> evaluate_call(const Expression& node);
  Result<Value> evaluate_filter(const Expression& node, const Value& input);
  Result<Value> evaluate_test(const Expression& node);
  Result<Arguments> evaluate_arguments(const Expression& node);
  Status spread_dict(const Value& value, Arguments& arguments);
  Result<Value> call_macro(const Macro& macro, const Arguments& arguments);
  Status bind_parameters(const Statement& macro, const Arguments& arguments);
  Status bind_extra(const Statement& macro, const Arguments& arguments);
  Result<Value> apply_filters(const Expression& filters, const Value& input);

  // evaluator_statement.cc
  Result<Flow> execute(const Body& body);
  Result<Flow> execute(const Statement& node);
  Result<Flow> execute_branch(const Statement& node);
  Result<Flow> execute_loop(const Statement& node);
  Result<Flow> loop_turns(const Statement& node, Loop& loop, const Value& loop_value);
  Result<Flow> execute_block(const Statement& node);  // assign_block, filter_block, scope_block
  Status assign(const Expression& target, const Value& value);

  const ParsedTemplate& program_;
  Runtime& runtime_;
  Value scope_;
  TextBuffer* out_ = nullptr;
};

}  // namespace optima::tokenizer::jinja
