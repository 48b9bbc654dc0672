// Filters on lists and dicts.
#include <algorithm>

#include "tokenizer/chat_template/filters.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

bool is_given(const Value& value) {
  return !value.is(Kind::missing) && !value.is(Kind::none);
}

// What an item is sorted or compared by.
struct KeyRule {
  Value path = Value::missing();  // an attribute, or missing = the item itself
  bool ignores_case = true;
};

Result<Value> fold_case(Runtime& runtime, const Value& key, const KeyRule& rule) {
  if (!rule.ignores_case || !key.is(Kind::string)) return key;
  OPTIMA_TRY(runtime.tick_bytes(4 * key.text().size()));
  return runtime.string(to_lower(key.text()));
}

Result<Value> key_of(Runtime& runtime, const Value& item, const KeyRule& rule) {
  Value key = item;
  if (is_given(rule.path)) {
    OPTIMA_ASSIGN(key, get_path(runtime, item, rule.path));
  }
  return fold_case(runtime, key, rule);
}

// The keys of `sort`: one per attribute named in a list separated by commas.
Result<Value> sort_key_of(Runtime& runtime, const Value& item, const KeyRule& rule) {
  if (!rule.path.is(Kind::string)) return key_of(runtime, item, rule);
  std::vector<Value> keys;
  for (const std::string_view part : split_at(rule.path.text(), ",", {})) {
    OPTIMA_ASSIGN(const Value path, runtime.string(std::string(part)));
    OPTIMA_ASSIGN(Value key, key_of(runtime, item, {path, rule.ignores_case}));
    keys.push_back(std::move(key));
  }
  return runtime.sequence(Flavor::list, std::move(keys));
}

enum class Order : uint8_t { rising, falling };

struct Keyed {
  Value key, item;
};

Result<Value> sorted(Runtime& runtime, std::vector<Keyed> keyed, Order order) {
  Status failure;
  const auto is_before = [&](const Keyed& a, const Keyed& b) {
    if (!failure.ok()) return false;
    const bool rising = order == Order::rising;
    Result<bool> less =
        is_ordered(runtime, Operator::less, rising ? a.key : b.key, rising ? b.key : a.key);
    if (!less.ok()) failure = less.take_status();
    return less.ok() && *less;
  };
  std::stable_sort(keyed.begin(), keyed.end(), is_before);
  if (!failure.ok()) return failure;
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return runtime.sequence(Flavor::list, std::move(items));
}

Result<Value> filter_sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound,
                bind(runtime, "sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0));
  const KeyRule rule{bound[2], !is_true(bound[1])};
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  std::vector<Keyed> keyed;
  for (const Value& item : items.sequence().items) {
    OPTIMA_ASSIGN(Value key, sort_key_of(runtime, item, rule));
    keyed.push_back({std::move(key), item});
  }
  return sorted(runtime, std::move(keyed), is_true(bound[0]) ? Order::falling : Order::rising);
}

Result<Value> filter_dictsort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound,
                bind(runtime, "dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0));
  OPTIMA_TRY(cannot_use_undefined(runtime, input));
  if (!input.is(Kind::dict)) {
    return runtime.fail(text("'dictsort' needs a dict, not '", type_name(input), "'"));
  }
  const std::string by = bound[1].is(Kind::string) ? bound[1].text() : "key";
  if (by != "key" && by != "value") return runtime.fail("'dictsort' sorts by 'key' or 'value'");
  const KeyRule rule{Value::missing(), !is_true(bound[0])};
  OPTIMA_ASSIGN(const Value pairs, dict_view(runtime, input.dict(), Flavor::dict_items));
  std::vector<Keyed> keyed;
  for (const Value& pair : pairs.sequence().items) {
    OPTIMA_ASSIGN(Value key, fold_case(runtime, pair.sequence().items[by == "key" ? 0 : 1], rule));
    keyed.push_back({std::move(key), pair});
  }
  return sorted(runtime, std::move(keyed), is_true(bound[2]) ? Order::falling : Order::rising);
}

Result<Value> filter_unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound,
                bind(runtime, "unique", arguments, {"case_sensitive", "attribute"}, 0));
  const KeyRule rule{bound[1], !is_true(bound[0])};
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  const Value seen = runtime.heap.dict(Kind::dict);
  std::vector<Value> unique;
  for (const Value& item : items.sequence().items) {
    OPTIMA_ASSIGN(const Value key, key_of(runtime, item, rule));
    OPTIMA_ASSIGN(const uint64_t hash, hash_of(runtime, key));
    if (seen.dict().find(key, hash) != nullptr) continue;
    seen.dict().set(key, hash, Value::none());
    unique.push_back(item);
  }
  return runtime.sequence(Flavor::generator, std::move(unique));
}

template <Operator kOp>
Result<Value> filter_extreme(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound,
                bind(runtime, "min/max", arguments, {"case_sensitive", "attribute"}, 0));
  const KeyRule rule{bound[1], !is_true(bound[0])};
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  Value best;
  Value best_key = Value::missing();
  for (const Value& item : items.sequence().items) {
    OPTIMA_ASSIGN(Value key, key_of(runtime, item, rule));
    bool is_better = best_key.is(Kind::missing);
    if (!is_better) {
      OPTIMA_ASSIGN(is_better, is_ordered(runtime, kOp, key, best_key));
    }
    if (is_better) best = item, best_key = std::move(key);
  }
  return best;
}

Result<Value> filter_sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "sum", arguments, {"attribute", "start"}, 0));
  Value total = bound[1].is(Kind::missing) ? Value::integer(0) : bound[1];
  if (total.is(Kind::string)) return runtime.fail("'sum' does not add strings");
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  for (const Value& item : items.sequence().items) {
    Value term = item;
    if (is_given(bound[0])) {
      OPTIMA_ASSIGN(term, get_path(runtime, item, bound[0]));
    }
    OPTIMA_ASSIGN(total, arithmetic(runtime, Operator::add, total, term));
  }
  return total;
}

Result<Value> filter_length(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "length", arguments, {}, 0).take_status());
  OPTIMA_ASSIGN(const int64_t length, length_of(runtime, input));
  return Value::integer(length);
}

Result<Value> filter_list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "list", arguments, {}, 0).take_status());
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  const std::vector<Value>& source = items.sequence().items;
  OPTIMA_TRY(runtime.allow_items(static_cast<int64_t>(source.size())));
  return runtime.sequence(Flavor::list, source);
}

Result<Value> filter_items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "items", arguments, {}, 0).take_status());
  if (input.is(Kind::undefined)) return runtime.sequence(Flavor::generator, {});
  if (!input.is(Kind::dict)) {
    return runtime.fail(text("'items' needs a dict, not '", type_name(input), "'"));
  }
  return dict_view(runtime, input.dict(), Flavor::generator);
}

Result<Value> filter_first(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "first", arguments, {}, 0).take_status());
  if (input.is(Kind::string)) {
    return input.text().empty() ? Result<Value>(Value())
                                : get_item(runtime, input, Value::integer(0));
  }
  if (input.is(Kind::sequence) && input.sequence().flavor == Flavor::generator) {
    std::vector<Value>& items = input.sequence().items;
    if (items.empty()) return Value();
    Value first = items.front();
    OPTIMA_TRY(runtime.tick(static_cast<int64_t>(items.size() / 64)));
    items.erase(items.begin());
    return first;
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  return items.sequence().items.empty() ? Value() : items.sequence().items.front();
}

Status require_reversible(Runtime& runtime, const Value& input, std::string_view name) {
  const bool is_generator =
      input.is(Kind::sequence) && input.sequence().flavor == Flavor::generator;
  if (!is_generator) return {};
  return runtime.fail(text("'", name, "' does not work on a generator; make a list of it first"));
}

Result<Value> filter_last(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "last", arguments, {}, 0).take_status());
  OPTIMA_TRY(require_reversible(runtime, input, "last"));
  if (input.is(Kind::string)) {
    return input.text().empty() ? Result<Value>(Value())
                                : get_item(runtime, input, Value::integer(-1));
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  return items.sequence().items.empty() ? Value() : items.sequence().items.back();
}

Result<Value> filter_reverse(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "reverse", arguments, {}, 0).take_status());
  if (input.is(Kind::string)) {
    return get_slice(runtime, input, {Value::missing(), Value::missing(), Value::integer(-1)});
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  std::vector<Value> reversed = items.sequence().items;
  OPTIMA_TRY(runtime.allow_items(static_cast<int64_t>(reversed.size())));
  std::reverse(reversed.begin(), reversed.end());
  return runtime.sequence(Flavor::generator, std::move(reversed));
}

Result<Value> filter_default(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound,
                bind(runtime, "default", arguments, {"default_value", "boolean"}, 0));
  const bool use_default = input.is(Kind::undefined) || (is_true(bound[1]) && !is_true(input));
  if (!use_default) return input;
  return bound[0].is(Kind::missing) ? runtime.string("") : Result<Value>(bound[0]);
}

Result<Value> filter_map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!is_true(input)) return runtime.sequence(Flavor::generator, {});
  const bool by_path = arguments.positional.empty();
  std::vector<Value> bound;
  Arguments rest = arguments;
  if (by_path) {
    OPTIMA_ASSIGN(bound, bind(runtime, "map", arguments, {"attribute", "default"}, 1));
  } else {
    if (!arguments.positional[0].is(Kind::string)) return runtime.fail("'map' needs a filter");
    rest.positional.erase(rest.positional.begin());
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  std::vector<Value> mapped;
  for (const Value& item : items.sequence().items) {
    Value value;
    if (by_path) {
      OPTIMA_ASSIGN(value, get_path(runtime, item, bound[0]));
      if (value.is(Kind::undefined) && is_given(bound[1])) value = bound[1];
    } else {
      const std::string& name = arguments.positional[0].text();
      OPTIMA_ASSIGN(value, call_filter(runtime, name, item, rest));
    }
    mapped.push_back(std::move(value));
  }
  return runtime.sequence(Flavor::generator, std::move(mapped));
}

// select, reject (kHasPath false), selectattr, rejectattr (kHasPath true).
template <bool kHasPath, bool kKeeps>
Result<Value> filter_select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!is_true(input)) return runtime.sequence(Flavor::generator, {});
  const std::vector<Value>& given = arguments.positional;
  constexpr size_t kTestAt = kHasPath ? 1 : 0;
  if (given.size() < kTestAt) return runtime.fail("an attribute's name is missing");
  const bool has_test_name = given.size() > kTestAt;
  Arguments rest;
  if (has_test_name) {
    if (!given[kTestAt].is(Kind::string)) return runtime.fail("a test's name must be a string");
    rest.positional.assign(given.begin() + kTestAt + 1, given.end());
    rest.named = arguments.named;
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  std::vector<Value> chosen;
  for (const Value& item : items.sequence().items) {
    Value tested = item;
    if (kHasPath) {
      OPTIMA_ASSIGN(tested, get_path(runtime, item, given[0]));
    }
    bool holds = is_true(tested);
    if (has_test_name) {
      OPTIMA_ASSIGN(holds, call_test(runtime, given[kTestAt].text(), tested, rest));
    }
    OPTIMA_TRY(runtime.tick());
    if (holds == kKeeps) chosen.push_back(item);
  }
  return runtime.sequence(Flavor::generator, std::move(chosen));
}

Result<Value> filter_batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "batch", arguments, {"linecount", "fill_with"}, 1));
  OPTIMA_ASSIGN(const int64_t size, to_index(runtime, bound[0], "'batch'"));
  if (size < 1) return runtime.fail("'batch' needs a positive size");
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  std::vector<Value> batches;
  std::vector<Value> batch;
  for (const Value& item : items.sequence().items) {
    if (static_cast<int64_t>(batch.size()) == size) {
      batches.push_back(runtime.heap.sequence(Flavor::list, std::move(batch)));
      batch.clear();
    }
    batch.push_back(item);
    OPTIMA_TRY(runtime.tick());
  }
  if (!batch.empty()) {
    if (is_given(bound[1])) {
      OPTIMA_TRY(runtime.allow_items(size));
      batch.resize(static_cast<size_t>(size), bound[1]);
    }
    batches.push_back(runtime.heap.sequence(Flavor::list, std::move(batch)));
  }
  return runtime.sequence(Flavor::generator, std::move(batches));
}

constexpr FilterEntry kSequenceFilters[] = {
    {"sort", filter_sort},
    {"dictsort", filter_dictsort},
    {"unique", filter_unique},
    {"min", filter_extreme<Operator::less>},
    {"max", filter_extreme<Operator::greater>},
    {"sum", filter_sum},
    {"length", filter_length},
    {"count", filter_length},
    {"list", filter_list},
    {"items", filter_items},
    {"first", filter_first},
    {"last", filter_last},
    {"reverse", filter_reverse},
    {"default", filter_default},
    {"d", filter_default},
    {"map", filter_map},
    {"select", filter_select<false, true>},
    {"reject", filter_select<false, false>},
    {"selectattr", filter_select<true, true>},
    {"rejectattr", filter_select<true, false>},
    {"batch", filter_batch},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() {
  return kSequenceFilters;
}

}  // namespace optima::tokenizer::jinja
