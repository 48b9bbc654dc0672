// The values a template computes with: Python's, as far as templates can tell. Scalars are held in
// place; everything else is a reference-counted object of a Heap, so that aliases see each other's
// changes. A Heap belongs to one rendering and one thread, counts the bytes alive in it, destroys
// without recursion, and frees cycles when it ends.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace optima::tokenizer::jinja {

enum class Kind : uint8_t {
  missing,  // an argument that was not given; never seen by a template
  undefined,
  none,
  boolean,
  integer,
  real,
  function,  // a global function
  string,    // from here on: objects
  sequence,
  dict,
  name_space,
  macro,
  method,
  loop,
  scope,  // variables; never seen by a template
};

class Heap;

struct Object {
  explicit Object(Kind object_kind) : kind(object_kind) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual void drop_references() {}  // lets go of every Value held

  Heap* heap = nullptr;
  Object* previous = nullptr;  // the heap's list of living objects
  Object* next = nullptr;
  int64_t bytes = 0;
  uint32_t references = 0;
  bool shared = false;  // a constant of a program: not counted, so that threads may share it
  const Kind kind;
};

struct String;
struct Sequence;
struct Dict;

class Value {
 public:
  Value() { payload_.name = nullptr; }  // undefined
  explicit Value(Object* object) : kind_(object->kind) {
    payload_.object = object;
    retain();
  }
  Value(const Value& other) : kind_(other.kind_), payload_(other.payload_) { retain(); }
  Value(Value&& other) noexcept : kind_(other.kind_), payload_(other.payload_) {
    other.kind_ = Kind::undefined;
    other.payload_.name = nullptr;
  }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() { release(); }

  // `name` is what was looked up, for messages; it outlives the value (it lies in the program).
  static Value undefined(const std::string* name);
  static Value missing() { return scalar(Kind::missing); }
  static Value none() { return scalar(Kind::none); }
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  static Value function(int64_t index);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_object() const { return kind_ >= Kind::string; }
  bool is_whole() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_whole() || kind_ == Kind::real; }

  // Each requires the kind it names.
  const std::string* undefined_name() const { return payload_.name; }
  int64_t whole() const { return payload_.integer; }  // also of a boolean: 0 or 1
  double number() const {
    return kind_ == Kind::real ? payload_.real : static_cast<double>(payload_.integer);
  }
  Object* object() const { return payload_.object; }
  const String& string() const;
  const std::string& text() const;
  Sequence& sequence() const;
  Dict& dict() const;  // of a dict or a namespace

 private:
  static Value scalar(Kind kind) {
    Value value;
    value.kind_ = kind;
    value.payload_.integer = 0;
    return value;
  }
  void retain() const {
    if (is_object() && !payload_.object->shared) ++payload_.object->references;
  }
  void release();

  Kind kind_ = Kind::undefined;
  union {
    const std::string* name;
    int64_t integer;
    double real;
    Object* object;
  } payload_;
};

struct String final : Object {
  explicit String(std::string value);
  bool is_ascii() const { return length == static_cast<int64_t>(text.size()); }

  const std::string text;  // well-formed UTF-8
  const int64_t length;    // code points
  bool safe = false;       // came from the filters `safe` or `escape`
};

// What kind of sequence it is to Python. Generators and views share the representation.
enum class Flavor : uint8_t { list, tuple, range, generator, dict_items, dict_keys, dict_values };

struct Sequence final : Object {
  Sequence(Flavor sequence_flavor, std::vector<Value> values)
      : Object(Kind::sequence), flavor(sequence_flavor), items(std::move(values)) {}
  void drop_references() override { items.clear(); }
  bool is_indexed() const { return flavor <= Flavor::range; }

  const Flavor flavor;
  std::vector<Value> items;  // a generator is emptied by the one who iterates over it
  int64_t range_stop = 0;    // what a range was called with, for printing
};

// Keys in the order of insertion. Keys must be hashable: see hash_of in operators.h, which is also
// where the hash comes from. A namespace is a dict that compares by identity.
struct Dict final : Object {
  using Entry = std::pair<Value, Value>;
  explicit Dict(Kind dict_kind) : Object(dict_kind) {}
  void drop_references() override { entries.clear(), index.clear(); }

  Value* find(const Value& key, uint64_t hash);
  Value* find(std::string_view key);
  void set(const Value& key, uint64_t hash, Value value);
  bool erase(const Value& key, uint64_t hash);

  std::vector<Entry> entries;
  std::unordered_multimap<uint64_t, uint32_t> index;  // hash → place in entries
};

// The variables of a block, with those of the block around it behind them.
struct Scope final : Object {
  explicit Scope(Value outer_scope) : Object(Kind::scope), outer(std::move(outer_scope)) {}
  void drop_references() override { variables.clear(), outer = Value(); }
  Scope* outer_scope() const {
    return outer.is(Kind::scope) ? static_cast<Scope*>(outer.object()) : nullptr;
  }
  const Value* find(uint32_t symbol) const;  // here and in the scopes behind
  void set(uint32_t symbol, Value value);

  Value outer;
  std::vector<std::pair<uint32_t, Value>> variables;
};

struct Statement;

struct Macro final : Object {
  Macro(const Statement* macro_definition, Value macro_scope)
      : Object(Kind::macro), definition(macro_definition), scope(std::move(macro_scope)) {}
  void drop_references() override { scope = Value(); }

  const Statement* const definition;
  Value scope;  // where it was defined
};

struct Method final : Object {
  Method(Value method_self, std::string_view method_name)
      : Object(Kind::method), self(std::move(method_self)), name(method_name) {}
  void drop_references() override { self = Value(); }

  Value self;
  const std::string_view name;  // an entry of the table of methods
};

// Where a `for` gets its next item from; gone once the loop has ended.
class LoopSource;

struct Loop final : Object {
  Loop() : Object(Kind::loop) {}
  void drop_references() override {
    previous_item = current = last_changed = Value();
    ahead.clear();
  }

  LoopSource* source = nullptr;
  int64_t index0 = -1;
  Value previous_item, current;
  Value last_changed = Value::missing();
  std::deque<Value> ahead;  // items fetched before their turn
  std::optional<int64_t> length;
};

class Heap {
 public:
  explicit Heap(int64_t bytes_max) : bytes_max_(bytes_max) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() { clear(); }

  // Takes ownership; `payload_bytes` is what the object holds beyond itself.
  Value adopt(Object* object, int64_t payload_bytes);
  Value string(std::string text);
  Value sequence(Flavor flavor, std::vector<Value> items);
  Value dict(Kind kind) { return adopt(new Dict(kind), sizeof(Dict)); }
  void grow(Object& object, int64_t more) { object.bytes += more, bytes_ += more; }
  void charge(int64_t bytes) { bytes_ += bytes; }  // for buffers that are no objects
  void free(Object* object);
  void clear();  // frees everything, cycles too; Values still held elsewhere must be gone
  // Declares what is alive now to be outside the limit: the input.
  void forgive() { bytes_max_ += bytes_; }

  int64_t bytes() const { return bytes_; }
  int64_t bytes_max() const { return bytes_max_; }

 private:
  Object* living_ = nullptr;
  Object* doomed_ = nullptr;  // linked by `next`
  bool is_freeing_ = false;
  int64_t bytes_ = 0;
  int64_t bytes_max_;
};

inline void Value::release() {
  if (!is_object() || payload_.object->shared) return;
  if (--payload_.object->references == 0) payload_.object->heap->free(payload_.object);
}

inline const String& Value::string() const {
  return *static_cast<const String*>(payload_.object);
}
inline const std::string& Value::text() const {
  return string().text;
}
inline Sequence& Value::sequence() const {
  return *static_cast<Sequence*>(payload_.object);
}
inline Dict& Value::dict() const {
  return *static_cast<Dict*>(payload_.object);
}

// Of a key that is hashable; equal numbers of different kinds hash alike.
uint64_t hash_value(const Value& key);
// Equality of two hashable keys.
bool keys_equal(const Value& a, const Value& b);
bool is_hashable(const Value& key);

}  // namespace optima::tokenizer::jinja
