// JSON as template values.
#pragma once

#include <string_view>

#include "base/json.h"
#include "tokenizer/chat_template/runtime.h"

namespace optima::tokenizer::jinja {

constexpr int32_t kJsonDepthMax = 120;  // less than the depth of values that can be printed

Value value_from_json(Heap& heap, const json::Value& value);
// Text that a template made: bounded by the limits of the rendering.
Result<Value> parse_json_value(Runtime& runtime, std::string_view text);

}  // namespace optima::tokenizer::jinja
