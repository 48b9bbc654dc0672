// Attributes of `loop`, computed on demand.
#include "tokenizer/chat_template/loop.h"

#include "tokenizer/chat_template/operators.h"

namespace optima::tokenizer::jinja {
namespace {

Loop& loop_of(const Value& value) {
  return *static_cast<Loop*>(value.object());
}

// Fetches one item more than are at hand; false when there is none.
Result<bool> look_further(Runtime& runtime, Loop& loop) {
  if (loop.source == nullptr) return false;
  const uint32_t at = runtime.at;
  Value item;
  OPTIMA_ASSIGN(const bool found, loop.source->fetch(item));
  runtime.at = at;
  if (found) loop.ahead.push_back(std::move(item));
  return found;
}

Result<bool> has_next(Runtime& runtime, Loop& loop) {
  if (!loop.ahead.empty()) return true;
  return look_further(runtime, loop);
}

}  // namespace

Result<bool> loop_advance(Runtime& runtime, Loop& loop) {
  OPTIMA_ASSIGN(const bool found, has_next(runtime, loop));
  if (!found) return false;
  loop.previous_item = std::move(loop.current);
  loop.current = std::move(loop.ahead.front());
  loop.ahead.pop_front();
  ++loop.index0;
  return true;
}

Result<int64_t> loop_length(Runtime& runtime, const Value& value) {
  Loop& loop = loop_of(value);
  if (!loop.length.has_value()) {
    while (true) {
      OPTIMA_ASSIGN(const bool found, look_further(runtime, loop));
      if (!found) break;
      OPTIMA_TRY(runtime.allow_items(static_cast<int64_t>(loop.ahead.size())));
    }
    loop.length = loop.index0 + 1 + static_cast<int64_t>(loop.ahead.size());
  }
  return *loop.length;
}

Result<Value> loop_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  Loop& loop = loop_of(value);
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  if (name == "last") {
    OPTIMA_ASSIGN(const bool more, has_next(runtime, loop));
    return Value::boolean(!more);
  }
  if (name == "previtem") return loop.index0 == 0 ? Value() : loop.previous_item;
  if (name == "nextitem") {
    OPTIMA_ASSIGN(const bool more, has_next(runtime, loop));
    return more ? loop.ahead.front() : Value();
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    OPTIMA_ASSIGN(const int64_t length, loop_length(runtime, value));
    if (name == "length") return Value::integer(length);
    return Value::integer(length - loop.index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name == "cycle" || name == "changed") {
    const std::string_view method = name == "cycle" ? "cycle" : "changed";
    return runtime.heap.adopt(new Method(value, method), sizeof(Method));
  }
  return Value();
}

Result<Value> call_loop_method(Runtime& runtime, const Method& method, const Arguments& arguments) {
  Loop& loop = loop_of(method.self);
  const std::vector<Value>& given = arguments.positional;
  if (!arguments.named.empty()) return runtime.fail(text("'", method.name, "' takes no names"));
  if (method.name == "cycle") {
    if (given.empty()) return runtime.fail("'cycle' needs at least one argument");
    return given[static_cast<size_t>(loop.index0) % given.size()];
  }
  OPTIMA_ASSIGN(Value now, runtime.sequence(Flavor::tuple, given));
  OPTIMA_ASSIGN(const bool same, are_equal(runtime, loop.last_changed, now));
  loop.last_changed = std::move(now);
  return Value::boolean(!same);
}

}  // namespace optima::tokenizer::jinja
