// The variable `loop`. Items are fetched one at a time, as the loop's `if` may depend on what the
// turns before it did; looking ahead (last, nextitem, length) fetches early.
#pragma once

#include <string_view>

#include "tokenizer/chat_template/runtime.h"

namespace optima::tokenizer::jinja {

class LoopSource {
 public:
  virtual ~LoopSource() = default;
  // Fetches the next item that the loop takes; false when there is none.
  virtual Result<bool> fetch(Value& item) = 0;
};

// Moves on to the next item; false at the end.
Result<bool> loop_advance(Runtime& runtime, Loop& loop);
Result<Value> loop_attribute(Runtime& runtime, const Value& loop, std::string_view name);
Result<int64_t> loop_length(Runtime& runtime, const Value& loop);
// loop.cycle(...) and loop.changed(...).
Result<Value> call_loop_method(Runtime& runtime, const Method& method, const Arguments& arguments);

}  // namespace optima::tokenizer::jinja
