// Objects and their heap. Letting go of the last reference to a deep structure must not recurse as
// deep as the structure: a dying object's children are put on the heap's list of doomed objects
// and destroyed in a loop.
#include "tokenizer/chat_template/value.h"

#include <cmath>
#include <functional>
#include <memory>

#include "base/utf8.h"

namespace optima::tokenizer::jinja {
namespace {

constexpr size_t kLinearEntries = 8;  // dicts up to this size are searched without the index
constexpr int64_t kTupleKeyDepthMax = 64;

bool is_int64(double value) {
  return value >= -0x1p63 && value < 0x1p63;
}

uint64_t hash_nested(const Value& key, int64_t depth) {
  switch (key.kind()) {
    case Kind::boolean:
    case Kind::integer:
      return std::hash<int64_t>()(key.whole());
    case Kind::real: {
      const double number = key.number();
      if (number == std::floor(number) && is_int64(number)) {
        return std::hash<int64_t>()(static_cast<int64_t>(number));
      }
      return std::hash<double>()(number);
    }
    case Kind::string:
      return std::hash<std::string_view>()(key.text());
    case Kind::sequence: {
      uint64_t hash = 0x9E3779B97F4A7C15u;
      if (depth >= kTupleKeyDepthMax) return hash;
      for (const Value& item : key.sequence().items) {
        hash = (hash ^ hash_nested(item, depth + 1)) * 0x100000001B3u;
      }
      return hash;
    }
    default:
      return static_cast<uint64_t>(key.kind());
  }
}

}  // namespace

Value Value::undefined(const std::string* name) {
  Value value;
  value.payload_.name = name;
  return value;
}

Value Value::boolean(bool value) {
  Value result = scalar(Kind::boolean);
  result.payload_.integer = value ? 1 : 0;
  return result;
}

Value Value::integer(int64_t value) {
  Value result = scalar(Kind::integer);
  result.payload_.integer = value;
  return result;
}

Value Value::real(double value) {
  Value result = scalar(Kind::real);
  result.payload_.real = value;
  return result;
}

Value Value::function(int64_t index) {
  Value result = scalar(Kind::function);
  result.payload_.integer = index;
  return result;
}

String::String(std::string value)
    : Object(Kind::string), text(std::move(value)), length(utf8_length(text)) {}

uint64_t hash_value(const Value& key) {
  return hash_nested(key, 0);
}

bool keys_equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
    return a.number() == b.number();
  }
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::string)) return a.text() == b.text();
  if (a.is(Kind::sequence)) {
    const std::vector<Value>& left = a.sequence().items;
    const std::vector<Value>& right = b.sequence().items;
    if (left.size() != right.size()) return false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!keys_equal(left[i], right[i])) return false;
    }
    return true;
  }
  return !a.is_object() || a.object() == b.object();
}

bool is_hashable(const Value& key) {
  // Tuples nest only as deep as the expression or the data that made them, plus what a loop adds;
  // the explicit stack keeps this check, which comes first, independent of that depth.
  std::vector<std::pair<const Value*, int64_t>> stack = {{&key, 0}};
  while (!stack.empty()) {
    const auto [value, depth] = stack.back();
    stack.pop_back();
    if (value->is(Kind::dict) || depth >= kTupleKeyDepthMax) return false;
    if (!value->is(Kind::sequence)) continue;
    if (value->sequence().flavor != Flavor::tuple) return false;
    if (value->sequence().items.size() > 64) return false;
    for (const Value& item : value->sequence().items) stack.emplace_back(&item, depth + 1);
    if (stack.size() > 4096) return false;
  }
  return true;
}

Value* Dict::find(const Value& key, uint64_t hash) {
  if (index.empty()) {
    for (Entry& entry : entries) {
      if (keys_equal(entry.first, key)) return &entry.second;
    }
    return nullptr;
  }
  const auto [first, last] = index.equal_range(hash);
  for (auto place = first; place != last; ++place) {
    Entry& entry = entries[place->second];
    if (keys_equal(entry.first, key)) return &entry.second;
  }
  return nullptr;
}

Value* Dict::find(std::string_view key) {
  const auto matches = [&](const Entry& entry) {
    return entry.first.is(Kind::string) && entry.first.text() == key;
  };
  if (index.empty()) {
    for (Entry& entry : entries) {
      if (matches(entry)) return &entry.second;
    }
    return nullptr;
  }
  const auto [first, last] = index.equal_range(std::hash<std::string_view>()(key));
  for (auto place = first; place != last; ++place) {
    if (matches(entries[place->second])) return &entries[place->second].second;
  }
  return nullptr;
}

void Dict::set(const Value& key, uint64_t hash, Value value) {
  if (Value* const old = find(key, hash)) {
    *old = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
  if (!index.empty()) {
    index.emplace(hash, static_cast<uint32_t>(entries.size() - 1));
  } else if (entries.size() > kLinearEntries) {
    for (size_t i = 0; i < entries.size(); ++i) {
      index.emplace(hash_value(entries[i].first), static_cast<uint32_t>(i));
    }
  }
  if (heap != nullptr) heap->grow(*this, 2 * sizeof(Entry));
}

bool Dict::erase(const Value& key, uint64_t hash) {
  Value* const value = find(key, hash);
  if (value == nullptr) return false;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (&entries[i].second != value) continue;
    entries.erase(entries.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  index.clear();
  if (entries.size() > kLinearEntries) {
    for (size_t i = 0; i < entries.size(); ++i) {
      index.emplace(hash_value(entries[i].first), static_cast<uint32_t>(i));
    }
  }
  return true;
}

const Value* Scope::find(uint32_t symbol) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_scope()) {
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) return &value;
    }
  }
  return nullptr;
}

void Scope::set(uint32_t symbol, Value value) {
  for (auto& [name, old] : variables) {
    if (name == symbol) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

Value Heap::adopt(Object* object, int64_t payload_bytes) {
  object->heap = this;
  object->bytes = payload_bytes + static_cast<int64_t>(sizeof(Object));
  object->next = living_;
  if (living_ != nullptr) living_->previous = object;
  living_ = object;
  bytes_ += object->bytes;
  return Value(object);
}

Value Heap::string(std::string text) {
  const auto bytes = static_cast<int64_t>(sizeof(String) + text.size());
  return adopt(new String(std::move(text)), bytes);
}

Value Heap::sequence(Flavor flavor, std::vector<Value> items) {
  const auto bytes = static_cast<int64_t>(sizeof(Sequence) + items.size() * sizeof(Value));
  return adopt(new Sequence(flavor, std::move(items)), bytes);
}

void Heap::free(Object* object) {
  if (object->previous != nullptr) object->previous->next = object->next;
  if (object->next != nullptr) object->next->previous = object->previous;
  if (living_ == object) living_ = object->next;
  bytes_ -= object->bytes;
  object->next = doomed_;
  doomed_ = object;
  if (is_freeing_) return;
  is_freeing_ = true;
  while (doomed_ != nullptr) {
    const std::unique_ptr<Object> dying(doomed_);
    doomed_ = dying->next;
  }
  is_freeing_ = false;
}

void Heap::clear() {
  // Every object is pinned while the references between them go, so that none dies in between.
  for (Object* object = living_; object != nullptr; object = object->next) {
    object->shared = false;
    ++object->references;
  }
  for (Object* object = living_; object != nullptr; object = object->next) {
    object->drop_references();
  }
  while (living_ != nullptr) {
    Object* const object = living_;
    object->references = 1;
    const Value last(object);
    --object->references;
  }
}

}  // namespace optima::tokenizer::jinja
