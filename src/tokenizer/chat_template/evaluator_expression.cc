// Expressions and calls. Every node that is entered counts towards the depth and the work; the
// place for messages is set again after the parts of a node have been evaluated.
#include <algorithm>

#include "tokenizer/chat_template/evaluator.h"

namespace optima::tokenizer::jinja {

std::string macro_name(const Value& macro) {
  return static_cast<const Macro*>(macro.object())->definition->text;
}

Result<Value> Evaluator::evaluate(const Expression& node) {
  const NestingGuard nesting(runtime_);
  runtime_.at = node.at;
  OPTIMA_TRY(nesting.check());
  OPTIMA_TRY(runtime_.tick());
  return dispatch(node);
}

Result<Value> Evaluator::evaluate_part(const Expression& node, size_t index) {
  if (node.parts[index] == nullptr) return Value::missing();
  return evaluate(*node.parts[index]);
}

Result<Value> Evaluator::dispatch(const Expression& node) {
  switch (node.kind) {
    case ExpressionKind::constant:
      return node.constant;
    case ExpressionKind::name:
      return look_up(node);
    case ExpressionKind::list:
      return evaluate_list(node, Flavor::list);
    case ExpressionKind::tuple:
      return evaluate_list(node, Flavor::tuple);
    case ExpressionKind::dict:
      return evaluate_dict(node);
    case ExpressionKind::chain:
      return evaluate_chain(node);
    case ExpressionKind::comparison:
      return evaluate_comparison(node);
    case ExpressionKind::negation: {
      OPTIMA_ASSIGN(const Value value, evaluate(*node.parts[0]));
      return Value::boolean(!is_true(value));
    }
    case ExpressionKind::minus:
    case ExpressionKind::plus:
      return evaluate_sign(node);
    case ExpressionKind::conditional:
      return evaluate_conditional(node);
    case ExpressionKind::attribute: {
      OPTIMA_ASSIGN(const Value object, evaluate(*node.parts[0]));
      runtime_.at = node.at;
      return get_attribute(runtime_, object, node.text);
    }
    case ExpressionKind::item:
      return evaluate_item(node);
    case ExpressionKind::slice:
      return evaluate_slice(node);
    case ExpressionKind::call:
      return evaluate_call(node);
    case ExpressionKind::filter: {
      OPTIMA_ASSIGN(const Value input, evaluate(*node.parts[0]));
      return evaluate_filter(node, input);
    }
    case ExpressionKind::test:
      return evaluate_test(node);
  }
  return runtime_.fail("an expression of unknown kind");
}

Value Evaluator::look_up(const Expression& node) const {
  if (const Value* const found = scope().find(node.symbol)) return *found;
  const int64_t global = find_global(node.text);
  return global >= 0 ? Value::function(global) : Value::undefined(&node.text);
}

Result<Value> Evaluator::evaluate_list(const Expression& node, Flavor flavor) {
  std::vector<Value> items;
  items.reserve(node.parts.size());
  for (const ExpressionPtr& part : node.parts) {
    OPTIMA_ASSIGN(Value item, evaluate(*part));
    items.push_back(std::move(item));
  }
  return runtime_.sequence(flavor, std::move(items));
}

Result<Value> Evaluator::evaluate_dict(const Expression& node) {
  Value result = runtime_.heap.dict(Kind::dict);
  for (size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    OPTIMA_ASSIGN(const Value key, evaluate(*node.parts[i]));
    OPTIMA_ASSIGN(Value value, evaluate(*node.parts[i + 1]));
    runtime_.at = node.at;
    OPTIMA_ASSIGN(const uint64_t hash, hash_of(runtime_, key));
    result.dict().set(key, hash, std::move(value));
  }
  return result;
}

Result<Value> Evaluator::evaluate_chain(const Expression& node) {
  if (node.operators[0] == Operator::concatenate) return evaluate_concatenation(node);
  OPTIMA_ASSIGN(Value value, evaluate(*node.parts[0]));
  for (size_t i = 0; i < node.operators.size(); ++i) {
    const Operator op = node.operators[i];
    if (op == Operator::logical_or && is_true(value)) return value;
    if (op == Operator::logical_and && !is_true(value)) return value;
    OPTIMA_ASSIGN(Value right, evaluate(*node.parts[i + 1]));
    runtime_.at = node.at;
    if (op == Operator::logical_or || op == Operator::logical_and) {
      value = std::move(right);
    } else {
      OPTIMA_ASSIGN(value, arithmetic(runtime_, op, value, right));
    }
  }
  return value;
}

Result<Value> Evaluator::evaluate_concatenation(const Expression& node) {
  TextBuffer text(runtime_);
  for (const ExpressionPtr& part : node.parts) {
    OPTIMA_ASSIGN(const Value value, evaluate(*part));
    runtime_.at = node.at;
    OPTIMA_TRY(append_str(runtime_, text, value));
  }
  return text.take_value();
}

Result<Value> Evaluator::evaluate_comparison(const Expression& node) {
  OPTIMA_ASSIGN(Value left, evaluate(*node.parts[0]));
  for (size_t i = 0; i < node.operators.size(); ++i) {
    OPTIMA_ASSIGN(Value right, evaluate(*node.parts[i + 1]));
    runtime_.at = node.at;
    OPTIMA_ASSIGN(const bool holds, compare(runtime_, node.operators[i], left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Evaluator::evaluate_sign(const Expression& node) {
  OPTIMA_ASSIGN(const Value value, evaluate(*node.parts[0]));
  runtime_.at = node.at;
  if (node.kind == ExpressionKind::minus) return negate(runtime_, value);
  return arithmetic(runtime_, Operator::subtract, value, Value::integer(0));
}

Result<Value> Evaluator::evaluate_conditional(const Expression& node) {
  OPTIMA_ASSIGN(const Value condition, evaluate(*node.parts[1]));
  if (is_true(condition)) return evaluate(*node.parts[0]);
  return node.parts[2] != nullptr ? evaluate(*node.parts[2]) : Value();
}

Result<Value> Evaluator::evaluate_item(const Expression& node) {
  OPTIMA_ASSIGN(const Value object, evaluate(*node.parts[0]));
  OPTIMA_ASSIGN(const Value key, evaluate(*node.parts[1]));
  runtime_.at = node.at;
  OPTIMA_ASSIGN(Value value, get_item(runtime_, object, key));
  const Expression& written = *node.parts[1];
  const bool is_named =
      written.kind == ExpressionKind::constant && written.constant.is(Kind::string);
  if (value.is(Kind::undefined) && is_named) return Value::undefined(&written.constant.text());
  return value;
}

Result<Value> Evaluator::evaluate_slice(const Expression& node) {
  OPTIMA_ASSIGN(const Value object, evaluate(*node.parts[0]));
  SliceBounds bounds;
  OPTIMA_ASSIGN(bounds.start, evaluate_part(node, 1));
  OPTIMA_ASSIGN(bounds.stop, evaluate_part(node, 2));
  OPTIMA_ASSIGN(bounds.step, evaluate_part(node, 3));
  runtime_.at = node.at;
  return get_slice(runtime_, object, bounds);
}

Result<Value> Evaluator::evaluate_call(const Expression& node) {
  OPTIMA_ASSIGN(const Value callee, evaluate(*node.parts[0]));
  OPTIMA_ASSIGN(const Arguments arguments, evaluate_arguments(node));
  runtime_.at = node.at;
  switch (callee.kind()) {
    case Kind::function:
      return call_global(runtime_, callee.whole(), arguments);
    case Kind::method:
      return call_method(runtime_, *static_cast<const Method*>(callee.object()), arguments);
    case Kind::macro:
      return call_macro(*static_cast<const Macro*>(callee.object()), arguments);
    default:
      OPTIMA_TRY(cannot_use_undefined(runtime_, callee));
      return runtime_.fail(text("a value of type '", type_name(callee), "' cannot be called"));
  }
}

Result<Value> Evaluator::evaluate_filter(const Expression& node, const Value& input) {
  OPTIMA_ASSIGN(const Arguments arguments, evaluate_arguments(node));
  runtime_.at = node.at;
  return call_filter(runtime_, node.text, input, arguments);
}

// The filters of a block: the innermost has no input of its own and takes the block's text.
Result<Value> Evaluator::apply_filters(const Expression& filters, const Value& input) {
  std::vector<const Expression*> order;
  for (const Expression* node = &filters; node != nullptr; node = node->parts[0].get()) {
    order.push_back(node);
  }
  Value value = input;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    OPTIMA_ASSIGN(value, evaluate_filter(**node, value));
  }
  return value;
}

Result<Value> Evaluator::evaluate_test(const Expression& node) {
  OPTIMA_ASSIGN(const Value input, evaluate(*node.parts[0]));
  OPTIMA_ASSIGN(const Arguments arguments, evaluate_arguments(node));
  runtime_.at = node.at;
  OPTIMA_ASSIGN(const bool holds, call_test(runtime_, node.text, input, arguments));
  return Value::boolean(holds);
}

Result<Arguments> Evaluator::evaluate_arguments(const Expression& node) {
  Arguments arguments;
  for (size_t i = 0; i < node.marks.size(); ++i) {
    const ArgumentMark& mark = node.marks[i];
    OPTIMA_ASSIGN(Value value, evaluate(*node.parts[i + 1]));
    switch (mark.passing) {
      case Passing::positional:
        arguments.positional.push_back(std::move(value));
        break;
      case Passing::named:
        arguments.named.emplace_back(mark.name, std::move(value));
        break;
      case Passing::spread_list: {
        OPTIMA_ASSIGN(const Value items, iterate(runtime_, value));
        const std::vector<Value>& more = items.sequence().items;
        OPTIMA_TRY(runtime_.allow_items(static_cast<int64_t>(more.size())));
        arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
        break;
      }
      case Passing::spread_dict:
        OPTIMA_TRY(spread_dict(value, arguments));
        break;
    }
  }
  return arguments;
}

Status Evaluator::spread_dict(const Value& value, Arguments& arguments) {
  if (!value.is(Kind::dict)) {
    return runtime_.fail(text("'**' needs a dict, not '", type_name(value), "'"));
  }
  const size_t written = arguments.named.size();
  for (const auto& [key, item] : value.dict().entries) {
    if (!key.is(Kind::string)) return runtime_.fail("'**' needs names that are strings");
    for (size_t i = 0; i < written; ++i) {
      if (arguments.named[i].first == key.text()) {
        return runtime_.fail(text("argument '", key.text(), "' given twice"));
      }
    }
    OPTIMA_TRY(runtime_.tick());
    arguments.owners.push_back(key);
    arguments.named.emplace_back(key.text(), item);
  }
  return {};
}

Result<Value> Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
  if (runtime_.calls >= runtime_.limits().depth_max) {
    return runtime_.fail(
        text("macros nested deeper than the limit of ", runtime_.limits().depth_max),
        {.limit = runtime_.limits().depth_max});
  }
  ++runtime_.calls;
  const Statement& definition = *macro.definition;
  const ScopeGuard inner(*this, new_scope(macro.scope));
  OPTIMA_TRY(bind_parameters(definition, arguments));
  TextBuffer text(runtime_);
  TextBuffer* const outer = std::exchange(out_, &text);
  Result<Flow> flow = execute(definition.body);
  out_ = outer;
  --runtime_.calls;
  if (!flow.ok()) return flow.take_status();
  return text.take_value();
}

Status Evaluator::bind_parameters(const Statement& macro, const Arguments& arguments) {
  const uint32_t call_at = runtime_.at;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    const auto is_named = [&](const auto& argument) { return argument.first == parameter.name; };
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(), is_named);
    if (i < arguments.positional.size()) {
      scope().set(parameter.symbol, arguments.positional[i]);
    } else if (named != arguments.named.end()) {
      scope().set(parameter.symbol, named->second);
    } else if (parameter.otherwise != nullptr) {
      OPTIMA_ASSIGN(Value value, evaluate(*parameter.otherwise));
      scope().set(parameter.symbol, std::move(value));
    } else {
      scope().set(parameter.symbol, Value::undefined(&parameter.name));
    }
  }
  runtime_.at = call_at;
  return bind_extra(macro, arguments);
}

// Arguments that no parameter takes: `varargs` and `kwargs`, where the macro mentions them.
Status Evaluator::bind_extra(const Statement& macro, const Arguments& arguments) {
  const size_t taken = std::min(arguments.positional.size(), macro.parameters.size());
  std::vector<Value> rest(arguments.positional.begin() + static_cast<ptrdiff_t>(taken),
                          arguments.positional.end());
  Value more = runtime_.heap.dict(Kind::dict);
  for (const auto& [name, value] : arguments.named) {
    const auto is_free = [&, wanted = name](const Parameter& p) { return p.name == wanted; };
    if (std::any_of(macro.parameters.begin() + static_cast<ptrdiff_t>(taken),
                    macro.parameters.end(), is_free)) {
      continue;
    }
    if (!macro.takes_more_named) {
      return runtime_.fail(text("macro '", macro.text, "' has no free parameter '", name, "'"));
    }
    OPTIMA_ASSIGN(const Value key, runtime_.string(std::string(name)));
    more.dict().set(key, hash_value(key), value);
  }
  if (!rest.empty() && !macro.takes_more_positional) {
    return runtime_.fail(text("macro '", macro.text, "' takes at most ", macro.parameters.size(),
                              " arguments, got ", arguments.positional.size()));
  }
  if (macro.takes_more_named) scope().set(program_.kwargs_symbol, std::move(more));
  if (macro.takes_more_positional) {
    OPTIMA_ASSIGN(Value tuple, runtime_.sequence(Flavor::tuple, std::move(rest)));
    scope().set(program_.varargs_symbol, std::move(tuple));
  }
  return {};
}

}  // namespace optima::tokenizer::jinja
