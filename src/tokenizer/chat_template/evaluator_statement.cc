// Statements. Loops, macros and blocks that catch their output open a scope; `if` does not, so
// what is assigned under it is seen behind it.
#include "tokenizer/chat_template/evaluator.h"

namespace optima::tokenizer::jinja {

// Hands a loop its items, leaving out those that fail the loop's `if`.
class ForSource final : public LoopSource {
 public:
  ForSource(Evaluator& evaluator, const Statement& node, Value items)
      : evaluator_(evaluator), node_(node), items_(std::move(items)), outer_(evaluator.scope_) {}

  Result<bool> fetch(Value& item) override {
    // The list may grow while it is looped over, as in Python.
    while (next_ < items_.sequence().items.size()) {
      OPTIMA_TRY(evaluator_.runtime_.count_iteration());
      const Value candidate = items_.sequence().items[next_++];
      OPTIMA_ASSIGN(const bool is_taken, passes(candidate));
      if (!is_taken) continue;
      item = candidate;
      return true;
    }
    return false;
  }

 private:
  Result<bool> passes(const Value& candidate) {
    if (node_.condition == nullptr) return true;
    const Evaluator::ScopeGuard inner(evaluator_, evaluator_.new_scope(outer_));
    OPTIMA_TRY(evaluator_.assign(*node_.target, candidate));
    OPTIMA_ASSIGN(const Value holds, evaluator_.evaluate(*node_.condition));
    return is_true(holds);
  }

  Evaluator& evaluator_;
  const Statement& node_;
  const Value items_;
  const Value outer_;
  size_t next_ = 0;
};

Result<std::string> Evaluator::run() {
  TextBuffer text(runtime_);
  out_ = &text;
  OPTIMA_TRY(execute(program_.body).take_status());
  return text.take();
}

Result<Evaluator::Flow> Evaluator::execute(const Body& body) {
  const NestingGuard nesting(runtime_);
  OPTIMA_TRY(nesting.check());
  for (const auto& statement : body) {
    runtime_.at = statement->at;
    OPTIMA_TRY(runtime_.tick());
    OPTIMA_ASSIGN(const Flow flow, execute(*statement));
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute(const Statement& node) {
  switch (node.kind) {
    case StatementKind::text:
      OPTIMA_TRY(out_->append(node.text));
      return Flow::normal;
    case StatementKind::output: {
      OPTIMA_ASSIGN(const Value value, evaluate(*node.value));
      runtime_.at = node.at;
      OPTIMA_TRY(append_str(runtime_, *out_, value));
      return Flow::normal;
    }
    case StatementKind::branch:
      return execute_branch(node);
    case StatementKind::loop:
      return execute_loop(node);
    case StatementKind::assign: {
      OPTIMA_ASSIGN(const Value value, evaluate(*node.value));
      runtime_.at = node.at;
      OPTIMA_TRY(assign(*node.target, value));
      return Flow::normal;
    }
    case StatementKind::macro:
      scope().set(node.symbol, runtime_.heap.adopt(new Macro(&node, scope_), sizeof(Macro)));
      return Flow::normal;
    case StatementKind::assign_block:
    case StatementKind::filter_block:
    case StatementKind::scope_block:
      return execute_block(node);
    case StatementKind::loop_break:
      return Flow::stop;
    case StatementKind::loop_continue:
      return Flow::next;
  }
  return runtime_.fail("a statement of unknown kind");
}

Result<Evaluator::Flow> Evaluator::execute_branch(const Statement& node) {
  for (const Branch& branch : node.branches) {
    if (branch.condition != nullptr) {
      OPTIMA_ASSIGN(const Value holds, evaluate(*branch.condition));
      if (!is_true(holds)) continue;
    }
    return execute(branch.body);
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_loop(const Statement& node) {
  OPTIMA_ASSIGN(const Value value, evaluate(*node.value));
  runtime_.at = node.at;
  OPTIMA_ASSIGN(Value items, iterate(runtime_, value));
  ForSource source(*this, node, std::move(items));
  const Value loop_value = runtime_.heap.adopt(new Loop(), sizeof(Loop));
  Loop& loop = *static_cast<Loop*>(loop_value.object());
  loop.source = &source;
  Result<Flow> flow = loop_turns(node, loop, loop_value);
  loop.source = nullptr;  // `loop` may outlive the loop
  return flow;
}

Result<Evaluator::Flow> Evaluator::loop_turns(const Statement& node, Loop& loop,
                                              const Value& loop_value) {
  const Value outer = scope_;
  bool is_empty = true;
  while (true) {
    OPTIMA_ASSIGN(const bool found, loop_advance(runtime_, loop));
    if (!found) break;
    is_empty = false;
    const ScopeGuard inner(*this, new_scope(outer));
    runtime_.at = node.at;
    OPTIMA_TRY(assign(*node.target, loop.current));
    scope().set(program_.loop_symbol, loop_value);
    OPTIMA_ASSIGN(const Flow flow, execute(node.body));
    if (flow == Flow::stop) return Flow::normal;
  }
  if (!is_empty) return Flow::normal;
  const ScopeGuard inner(*this, new_scope(outer));
  return execute(node.otherwise);
}

Result<Evaluator::Flow> Evaluator::execute_block(const Statement& node) {
  TextBuffer text(runtime_);
  Flow flow = Flow::normal;
  {
    Value inner_scope = new_scope(scope_);
    for (const auto& [target, expression] : node.assignments) {
      OPTIMA_ASSIGN(const Value value, evaluate(*expression));
      const ScopeGuard inner(*this, inner_scope);
      OPTIMA_TRY(assign(*target, value));
    }
    const ScopeGuard inner(*this, std::move(inner_scope));
    const bool catches = node.kind != StatementKind::scope_block;
    TextBuffer* const outer = catches ? std::exchange(out_, &text) : out_;
    Result<Flow> result = execute(node.body);
    out_ = outer;
    if (!result.ok()) return result.take_status();
    flow = *result;
  }
  if (node.kind == StatementKind::scope_block || flow != Flow::normal) return flow;
  OPTIMA_ASSIGN(Value value, text.take_value());
  if (node.value != nullptr) {
    OPTIMA_ASSIGN(value, apply_filters(*node.value, value));
  }
  runtime_.at = node.at;
  if (node.kind == StatementKind::assign_block) {
    OPTIMA_TRY(assign(*node.target, value));
  } else {
    OPTIMA_TRY(append_str(runtime_, *out_, value));
  }
  return Flow::normal;
}

Status Evaluator::assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::name) {
    scope().set(target.symbol, value);
    return {};
  }
  if (target.kind == ExpressionKind::attribute) {
    const Value object = look_up(*target.parts[0]);
    if (!object.is(Kind::name_space)) {
      return runtime_.fail(text("'", target.parts[0]->text, "' is no namespace"));
    }
    if (target.text.starts_with('_')) {
      return runtime_.fail(text("a namespace cannot hold '", target.text, "'"));
    }
    OPTIMA_ASSIGN(const Value key, runtime_.string(target.text));
    object.dict().set(key, hash_value(key), value);
    return {};
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime_, value));
  // A copy of the references: assigning may drop the last one to the list.
  const std::vector<Value> parts = items.sequence().items;
  if (parts.size() != target.parts.size()) {
    return runtime_.fail(
        text("cannot unpack ", parts.size(), " items into ", target.parts.size(), " names"));
  }
  for (size_t i = 0; i < parts.size(); ++i) OPTIMA_TRY(assign(*target.parts[i], parts[i]));
  return {};
}

}  // namespace optima::tokenizer::jinja
