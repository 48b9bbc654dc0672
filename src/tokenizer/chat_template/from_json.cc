// The DOM of the JSON reader is copied into the heap of the rendering, which may then change it.
#include "tokenizer/chat_template/from_json.h"

#include <algorithm>

namespace optima::tokenizer::jinja {

// Recursion is bounded by the depth limit of the reader.
Value value_from_json(Heap& heap, const json::Value& value) {
  if (const bool* const boolean = value.boolean()) return Value::boolean(*boolean);
  if (const int64_t* const integer = value.integer()) return Value::integer(*integer);
  if (const double* const real = value.real()) return Value::real(*real);
  if (const std::string* const string = value.string()) return heap.string(*string);
  if (const json::Array* const array = value.array()) {
    std::vector<Value> items;
    items.reserve(array->size());
    for (const json::Value& item : *array) items.push_back(value_from_json(heap, item));
    return heap.sequence(Flavor::list, std::move(items));
  }
  if (const json::Object* const object = value.object()) {
    Value result = heap.dict(Kind::dict);
    for (const json::Member& member : *object) {
      const Value key = heap.string(member.key);
      result.dict().set(key, hash_value(key), value_from_json(heap, member.value));
    }
    return result;
  }
  return Value::none();
}

Result<Value> parse_json_value(Runtime& runtime, std::string_view text) {
  // Every value but the first follows one of these, and takes about that many bytes.
  constexpr int64_t kItemBytes = 256;
  const auto count = std::count_if(text.begin(), text.end(), [](char c) {
    return c == ',' || c == '[' || c == '{' || c == ':';
  });
  OPTIMA_TRY(runtime.allow_items(count, kItemBytes));
  OPTIMA_TRY(runtime.tick_bytes(8 * text.size()));
  Result<json::Value> document = json::parse(text, {.depth_max = kJsonDepthMax});
  if (!document.ok()) return runtime.fail(document.status().message());
  return value_from_json(runtime.heap, *document);
}

}  // namespace optima::tokenizer::jinja
