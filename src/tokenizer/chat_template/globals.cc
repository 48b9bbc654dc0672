// The functions a template can call by name.
#include "tokenizer/chat_template/operators.h"

namespace optima::tokenizer::jinja {
namespace {

using GlobalFunction = Result<Value> (*)(Runtime&, const Arguments&);

struct GlobalEntry {
  std::string_view name;
  GlobalFunction function;
};

constexpr int64_t kRangeMax = 100'000;  // as Jinja's sandbox

Result<Value> make_range(Runtime& runtime, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "range", arguments, {"a", "b", "step"}, 1));
  if (!arguments.named.empty()) return runtime.fail("'range' takes no names");
  const bool has_stop = !bound[1].is(Kind::missing);
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  OPTIMA_ASSIGN(stop, to_index(runtime, has_stop ? bound[1] : bound[0], "'range'"));
  if (has_stop) {
    OPTIMA_ASSIGN(start, to_index(runtime, bound[0], "'range'"));
  }
  if (!bound[2].is(Kind::missing)) {
    OPTIMA_ASSIGN(step, to_index(runtime, bound[2], "'range'"));
  }
  if (step == 0) return runtime.fail("'range' with step 0");
  std::vector<Value> items;
  for (int64_t value = start; step > 0 ? value < stop : value > stop;) {
    if (static_cast<int64_t>(items.size()) >= kRangeMax) {
      return runtime.fail(text("'range' of more than ", kRangeMax, " items"), {.limit = kRangeMax});
    }
    items.push_back(Value::integer(value));
    if (__builtin_add_overflow(value, step, &value)) break;
  }
  OPTIMA_TRY(runtime.allow_items(static_cast<int64_t>(items.size())));
  OPTIMA_ASSIGN(Value result, runtime.sequence(Flavor::range, std::move(items)));
  result.sequence().range_stop = stop;
  return result;
}

// Fills a dict from a mapping or from pairs, then from named arguments.
Result<Value> fill_dict(Runtime& runtime, Kind kind, const Arguments& arguments) {
  Value result = runtime.heap.dict(kind);
  Dict& dict = result.dict();
  if (arguments.positional.size() > 1) return runtime.fail("'dict' takes one argument and names");
  for (const Value& source : arguments.positional) {
    if (source.is(Kind::dict)) {
      OPTIMA_TRY(runtime.allow_items(static_cast<int64_t>(source.dict().entries.size())));
      for (const auto& [key, value] : source.dict().entries) dict.set(key, hash_value(key), value);
      continue;
    }
    OPTIMA_ASSIGN(const Value pairs, iterate(runtime, source));
    for (const Value& pair : pairs.sequence().items) {
      OPTIMA_ASSIGN(const Value parts, iterate(runtime, pair));
      const std::vector<Value>& items = parts.sequence().items;
      if (items.size() != 2) return runtime.fail("'dict' needs pairs");
      OPTIMA_ASSIGN(const uint64_t hash, hash_of(runtime, items[0]));
      dict.set(items[0], hash, items[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    OPTIMA_ASSIGN(const Value key, runtime.string(std::string(name)));
    dict.set(key, hash_value(key), value);
  }
  return result;
}

Result<Value> make_dict(Runtime& runtime, const Arguments& arguments) {
  return fill_dict(runtime, Kind::dict, arguments);
}

Result<Value> make_namespace(Runtime& runtime, const Arguments& arguments) {
  OPTIMA_ASSIGN(Value result, fill_dict(runtime, Kind::name_space, arguments));
  for (const auto& [key, value] : result.dict().entries) {
    if (key.is(Kind::string) && key.text().starts_with('_')) {
      return runtime.fail(text("a namespace cannot hold '", key.text(), "'"));
    }
  }
  return result;
}

Result<Value> raise_exception(Runtime& runtime, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "raise_exception", arguments, {"message"}, 1));
  TextBuffer message(runtime);
  OPTIMA_TRY(append_str(runtime, message, bound[0]));
  return runtime.raise(message.take());
}

Result<Value> strftime_now(Runtime& runtime, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "strftime_now", arguments, {"format"}, 1));
  if (!bound[0].is(Kind::string)) return runtime.fail("'strftime_now' needs a string");
  return format_time(runtime, bound[0].text(), runtime.now_unix_s());
}

constexpr GlobalEntry kGlobals[] = {
    {"range", make_range},          {"dict", make_dict},
    {"namespace", make_namespace},  {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

int64_t find_global(std::string_view name) {
  for (size_t i = 0; i < std::size(kGlobals); ++i) {
    if (kGlobals[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

std::string_view global_name(int64_t index) {
  return kGlobals[index].name;
}

Result<Value> call_global(Runtime& runtime, int64_t index, const Arguments& arguments) {
  return kGlobals[index].function(runtime, arguments);
}

}  // namespace optima::tokenizer::jinja
