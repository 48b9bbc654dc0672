// Truth, equality, order and membership. Comparing walks nested values; depth and work are bounded
// because a value may share its parts many times over.
#include "tokenizer/chat_template/operators.h"

#include <algorithm>
#include <cmath>

namespace optima::tokenizer::jinja {
namespace {

bool has_elements(Flavor flavor) {
  return flavor <= Flavor::tuple;
}

// -1, 0 or 1; 2 when not comparable (NaN).
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) {
    return a.whole() < b.whole() ? -1 : a.whole() > b.whole() ? 1 : 0;
  }
  const double x = a.number();
  const double y = b.number();
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

bool order_holds(Operator op, int order) {
  switch (op) {
    case Operator::less:
      return order == -1;
    case Operator::less_equal:
      return order == -1 || order == 0;
    case Operator::greater:
      return order == 1;
    default:
      return order == 1 || order == 0;
  }
}

class Comparer {
 public:
  explicit Comparer(Runtime& runtime) : runtime_(runtime) {}

  Result<bool> equal(const Value& a, const Value& b) {
    OPTIMA_TRY(runtime_.tick());
    if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
    if (a.kind() != b.kind()) return false;
    if (!a.is_object()) return !a.is(Kind::function) || a.whole() == b.whole();
    if (a.object() == b.object()) return true;
    if (a.is(Kind::string)) {
      OPTIMA_TRY(runtime_.tick_bytes(a.text().size()));
      return a.text() == b.text();
    }
    if (a.is(Kind::sequence)) return equal_sequences(a.sequence(), b.sequence());
    if (a.is(Kind::dict)) return equal_dicts(a.dict(), b.dict());
    return false;
  }

  // The order of two values, or an error if they have none.
  Result<int> order(Operator op, const Value& a, const Value& b) {
    OPTIMA_TRY(runtime_.tick());
    if (a.is_number() && b.is_number()) return compare_numbers(a, b);
    if (a.is(Kind::string) && b.is(Kind::string)) {
      // The order of UTF-8 bytes is the order of code points.
      OPTIMA_TRY(runtime_.tick_bytes(std::min(a.text().size(), b.text().size())));
      const int order = a.text().compare(b.text());
      return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    if (a.is(Kind::sequence) && b.is(Kind::sequence) &&
        a.sequence().flavor == b.sequence().flavor && has_elements(a.sequence().flavor)) {
      return order_sequences(op, a.sequence().items, b.sequence().items);
    }
    OPTIMA_TRY(cannot_use_undefined(runtime_, a));
    OPTIMA_TRY(cannot_use_undefined(runtime_, b));
    return runtime_.fail(text("'", operator_text(op), "' does not work between '", type_name(a),
                              "' and '", type_name(b), "'"));
  }

 private:
  Status enter() {
    if (++depth_ <= Runtime::kValueDepthMax) return {};
    return runtime_.fail(text("comparing values nested deeper than ", Runtime::kValueDepthMax));
  }

  Result<bool> equal_sequences(const Sequence& a, const Sequence& b) {
    if (a.flavor != b.flavor || !a.is_indexed()) return false;
    if (a.items.size() != b.items.size()) return false;
    OPTIMA_TRY(enter());
    for (size_t i = 0; i < a.items.size(); ++i) {
      OPTIMA_ASSIGN(const bool same, equal(a.items[i], b.items[i]));
      if (!same) return false;
    }
    --depth_;
    return true;
  }

  Result<bool> equal_dicts(const Dict& a, Dict& b) {
    if (a.entries.size() != b.entries.size()) return false;
    OPTIMA_TRY(enter());
    for (const Dict::Entry& entry : a.entries) {
      const Value* const other = b.find(entry.first, hash_value(entry.first));
      if (other == nullptr) return false;
      OPTIMA_ASSIGN(const bool same, equal(entry.second, *other));
      if (!same) return false;
    }
    --depth_;
    return true;
  }

  Result<int> order_sequences(Operator op, const std::vector<Value>& a,
                              const std::vector<Value>& b) {
    OPTIMA_TRY(enter());
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      OPTIMA_ASSIGN(const bool same, equal(a[i], b[i]));
      if (!same) {
        OPTIMA_ASSIGN(const int result, order(op, a[i], b[i]));
        --depth_;
        return result;
      }
    }
    --depth_;
    return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
  }

  Runtime& runtime_;
  int32_t depth_ = 0;
};

}  // namespace

std::string_view operator_text(Operator op) {
  constexpr std::string_view kTexts[] = {"or",     "and", "==", "!=", "<", "<=", ">",  ">=", "in",
                                         "not in", "+",   "-",  "~",  "*", "/",  "//", "%",  "**"};
  return kTexts[static_cast<size_t>(op)];
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.whole() != 0;
    case Kind::real:
      return value.number() != 0;
    case Kind::string:
      return !value.text().empty();
    case Kind::sequence:
      return value.sequence().flavor == Flavor::generator || !value.sequence().items.empty();
    case Kind::dict:
      return !value.dict().entries.empty();
    default:
      return true;
  }
}

Result<bool> are_equal(Runtime& runtime, const Value& a, const Value& b) {
  return Comparer(runtime).equal(a, b);
}

Result<bool> is_ordered(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  OPTIMA_ASSIGN(const int order, Comparer(runtime).order(op, a, b));
  return order_holds(op, order);
}

Result<bool> compare(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::equal:
      return are_equal(runtime, a, b);
    case Operator::not_equal: {
      OPTIMA_ASSIGN(const bool same, are_equal(runtime, a, b));
      return !same;
    }
    case Operator::in:
      return contains(runtime, b, a);
    case Operator::not_in: {
      OPTIMA_ASSIGN(const bool inside, contains(runtime, b, a));
      return !inside;
    }
    default:
      return is_ordered(runtime, op, a, b);
  }
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is(Kind::string)) {
    if (!item.is(Kind::string)) {
      return runtime.fail(
          text("'in' a string needs a string on the left, not '", type_name(item), "'"));
    }
    OPTIMA_TRY(runtime.tick_bytes(container.text().size()));
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is(Kind::dict)) {
    OPTIMA_ASSIGN(const uint64_t hash, hash_of(runtime, item));
    return container.dict().find(item, hash) != nullptr;
  }
  OPTIMA_ASSIGN(const Value items, iterate(runtime, container));
  for (const Value& element : items.sequence().items) {
    OPTIMA_ASSIGN(const bool same, are_equal(runtime, element, item));
    if (same) return true;
  }
  return false;
}

Result<uint64_t> hash_of(Runtime& runtime, const Value& key) {
  if (!is_hashable(key)) {
    return runtime.fail(text("a value of type '", type_name(key), "' cannot be a key"));
  }
  if (key.is(Kind::string)) OPTIMA_TRY(runtime.tick_bytes(key.text().size()));
  return hash_value(key);
}

Status cannot_use_undefined(Runtime& runtime, const Value& value) {
  if (!value.is(Kind::undefined)) return {};
  if (value.undefined_name() == nullptr) return runtime.fail("the value is undefined");
  return runtime.fail(text("'", *value.undefined_name(), "' is undefined"));
}

}  // namespace optima::tokenizer::jinja
