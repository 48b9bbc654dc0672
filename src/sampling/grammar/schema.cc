// Values, choices and constants. What a reference leads to is a part that is called, so that
// recursion closes; everything else is built in its place. anyOf next to other keywords: each
// branch is brought together with them first.
#include "sampling/grammar/schema.h"

#include <algorithm>

#include "base/text.h"
#include "sampling/grammar/schema_compiler.h"

namespace optima::sampling::grammar {
namespace {

constexpr int64_t kBranchesMax = 20000;    // of choices multiplied out
constexpr int64_t kComparisonsMax = 1000;  // of branches of oneOf that a look cannot tell apart
constexpr int64_t kSmallStates = 1 << 15;  // of a network that is built to see whether it is empty
constexpr int64_t kPartsMax = 50000;
constexpr int64_t kChoicesMax = 64;    // of one value
constexpr int64_t kNestingMax = 64;    // of choices in choices: they are followed on the stack
constexpr int64_t kComparingMax = 16;  // comparisons that are made to make a comparison

// Counts a level of recursion for as long as it lives.
class Level {
 public:
  explicit Level(int64_t& count) : count_(count) { ++count_; }
  ~Level() { --count_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int64_t& count_;
};

Status too_many(std::string_view what, const std::string& place, int64_t limit) {
  return {Code::unsupported,
          text("schema, ", place, ": more than ", limit, ' ', what),
          {-1, -1, limit}};
}

}  // namespace

Result<StateId> compile_schema(std::string_view source, Builder& builder) {
  OPTIMA_ASSIGN(const json::Value root, json::parse(source));
  SchemaReader reader(root, builder.limits());
  return SchemaCompiler(reader, builder).whole(Conjunction{{&root, "#"}});
}

Result<StateId> SchemaCompiler::whole(const Conjunction& conjunction) {
  const StateId start = part_of(conjunction);
  OPTIMA_TRY(finish_parts());
  return start;
}

Result<StateId> SchemaCompiler::whole(const Flat& asked) {
  const StateId start = builder_.state();
  OPTIMA_TRY(choose(asked, start, builder_.final_state()));
  OPTIMA_TRY(finish_parts());
  return start;
}

Status SchemaCompiler::finish_parts() {
  while (!open_.empty() && !builder_.full()) {
    const Part part = std::move(open_.back());
    open_.pop_back();
    OPTIMA_ASSIGN(const Flat asked, reader_.flatten(part.conjunction));
    OPTIMA_TRY(choose(asked, part.start, builder_.final_state()));
    if (static_cast<int64_t>(parts_.size()) > kPartsMax)
      return too_many("parts", part.conjunction.front().place, kPartsMax);
  }
  return {};
}

StateId SchemaCompiler::part_of(const Conjunction& conjunction) {
  std::vector<const json::Value*> key;
  for (const SchemaRef& ref : conjunction) key.push_back(ref.schema);
  std::sort(key.begin(), key.end());
  key.erase(std::unique(key.begin(), key.end()), key.end());
  const auto known = parts_.find(key);
  if (known != parts_.end()) return known->second;
  const StateId start = builder_.state();
  builder_.name(start, text("the schema at ", conjunction.front().place));
  parts_.emplace(std::move(key), start);
  open_.push_back({start, conjunction});
  return start;
}

Status SchemaCompiler::all(const Conjunction& conjunction, StateId from, StateId to) {
  if (builder_.full()) return {};
  Conjunction followed = conjunction;
  bool moved = false;
  for (SchemaRef& ref : followed) {
    OPTIMA_ASSIGN(const bool one_moved, reader_.follow(ref));
    moved = moved || one_moved;
  }
  if (moved) {
    builder_.call(from, part_of(followed), to);
    return {};
  }
  OPTIMA_ASSIGN(const Flat asked, reader_.flatten(followed));
  return choose(asked, from, to);
}

Status SchemaCompiler::choose(Flat asked, StateId from, StateId to) {
  if (asked.impossible || builder_.full()) return {};
  if (asked.choices.empty()) return flat(asked, from, to);
  if (static_cast<int64_t>(asked.choices.size()) > kChoicesMax)
    return too_many("anyOf and oneOf that must all hold", asked.place, kChoicesMax);
  const Choice choice = std::move(asked.choices.back());
  asked.choices.pop_back();
  const Level level(nesting_);
  if (nesting_ > kNestingMax)
    return too_many("choices inside each other", choice.place, kNestingMax);
  if (choice.only_one) OPTIMA_TRY(check_only_one(asked, choice));
  for (const SchemaRef& one : choice.branches) OPTIMA_TRY(branch(asked, one, from, to));
  return {};
}

Status SchemaCompiler::branch(const Flat& rest, const SchemaRef& branch, StateId from, StateId to) {
  if (++branches_ > kBranchesMax)
    return too_many("combinations of the branches of anyOf and oneOf", branch.place, kBranchesMax);
  const Flat nothing;
  const bool alone = rest.types == nothing.types && !rest.values && rest.choices.empty() &&
                     !rest.range.low && !rest.range.high && rest.range.multiple == 0 &&
                     rest.length_min == 0 && rest.length_max == kUnlimited && rest.texts.empty() &&
                     rest.objects.empty() && rest.required.empty() && rest.members_min == 0 &&
                     rest.members_max == kUnlimited && rest.arrays.empty() && rest.items_min == 0 &&
                     rest.items_max == kUnlimited;
  if (alone) return all({branch}, from, to);
  Flat both = rest;
  OPTIMA_TRY(reader_.add(branch, both));
  return choose(std::move(both), from, to);
}

Status SchemaCompiler::check_only_one(const Flat& rest, const Choice& choice) {
  for (size_t i = 0; i < choice.branches.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      OPTIMA_ASSIGN(const bool disjoint,
                    is_empty_together(rest, choice.branches[j], choice.branches[i]));
      if (disjoint) continue;
      return {Code::unsupported, text("schema, ", choice.place, ": branches ", j, " and ", i,
                                      " have values in common; oneOf is supported where none "
                                      "have, use anyOf otherwise")};
    }
  }
  return {};
}

Result<bool> SchemaCompiler::is_empty_together(const Flat& rest, const SchemaRef& a,
                                               const SchemaRef& b) {
  Flat both = rest;
  OPTIMA_TRY(reader_.add(a, both));
  OPTIMA_TRY(reader_.add(b, both));
  OPTIMA_ASSIGN(const bool empty, reader_.surely_empty(both));
  if (empty) return true;
  if (++comparisons_ > kComparisonsMax)
    return too_many("pairs of branches of oneOf to compare", a.place, kComparisonsMax);
  // Their values in common, as a network: without a text, there are none. Choices inside are taken
  // as anyOf, which can only make it larger.
  for (Choice& choice : both.choices) choice.only_one = false;
  Limits limits = builder_.limits();
  limits.states = std::min(limits.states, kSmallStates);
  Builder small(limits);
  SchemaCompiler compiler(reader_, small);
  compiler.comparisons_ = comparisons_;
  compiler.comparing_ = comparing_ + 1;
  if (compiler.comparing_ > kComparingMax)
    return too_many("comparisons of oneOf inside each other", a.place, kComparingMax);
  OPTIMA_ASSIGN(const StateId start, compiler.whole(both));
  comparisons_ = compiler.comparisons_;
  const Result<Program> program = small.finish(start);
  if (program.ok()) return false;
  if (program.status().code() == Code::invalid_argument) return true;
  return program.status();
}

Status SchemaCompiler::flat(const Flat& asked, StateId from, StateId to) {
  if (asked.values) return constants(asked, from, to);
  if (!asked.constrained) {
    builder_.call(from, rules_.value(), to);
    return {};
  }
  if (asked.types & kNull) builder_.literal(from, "null", to);
  if (asked.types & kBoolean) {
    builder_.literal(from, "true", to);
    builder_.literal(from, "false", to);
  }
  if (asked.types & (kInteger | kFractional)) number(asked, from, to);
  if (asked.types & kString) OPTIMA_TRY(string(asked, from, to));
  if (asked.types & kArray) OPTIMA_TRY(array(asked, from, to));
  if (asked.types & kObject) OPTIMA_TRY(object(asked, from, to));
  return {};
}

Status SchemaCompiler::constants(const Flat& asked, StateId from, StateId to) {
  for (const SchemaRef& value : *asked.values) {
    OPTIMA_ASSIGN(const bool admitted, reader_.admits(asked, *value.schema));
    if (admitted) constant(*value.schema, from, to);
    if (builder_.full()) break;
  }
  return {};
}

void SchemaCompiler::constant_number(const Decimal& value, StateId from, StateId to) {
  if (!value.is_integer()) {
    const NumberBound bound{value, false};
    return write_number(builder_, from, {bound, bound, false, 0}, to);
  }
  const std::string digits =
      (value.negative ? "-" : "") + (value.is_zero() ? std::string("0") : value.whole());
  builder_.literal(from, digits, to);
}

void SchemaCompiler::constant(const json::Value& value, StateId from, StateId to) {
  if (value.is_null()) return builder_.literal(from, "null", to);
  if (value.boolean()) return builder_.literal(from, *value.boolean() ? "true" : "false", to);
  if (const std::optional<Decimal> number = decimal_of(value)) {
    constant_number(*number, from, to);
    // A constant that is written with a point may be written so.
    if (value.real() && number->is_integer()) {
      const StateId whole = builder_.state();
      constant_number(*number, from, whole);
      builder_.literal(whole, ".0", to);
    }
    return;
  }
  if (value.array()) return constant_array(*value.array(), from, to);
  if (value.object()) return constant_object(*value.object(), from, to);
  const StateId inside = builder_.state(), end = builder_.state();
  builder_.bytes(from, '"', '"', inside);
  text_.literal(inside, *value.string(), end);
  builder_.bytes(end, '"', '"', to);
}

void SchemaCompiler::constant_array(const json::Array& array, StateId from, StateId to) {
  StateId now = builder_.state();
  rules_.open(from, '[', now);
  if (array.empty()) return builder_.bytes(now, ']', ']', to);
  for (size_t i = 0; i < array.size() && !builder_.full(); ++i) {
    const StateId after = builder_.state();
    constant(array[i], now, after);
    if (i + 1 == array.size()) return rules_.close(after, ']', to);
    now = builder_.state();
    rules_.separator(after, ',', now);
  }
}

void SchemaCompiler::constant_object(const json::Object& object, StateId from, StateId to) {
  Object all = braces(builder_.final_state());
  for (const json::Member& member : object) {
    if (builder_.full()) return;
    const StateId start = builder_.state(), inside = builder_.state(), quote = builder_.state();
    const StateId colon = builder_.state(), value = builder_.state();
    builder_.bytes(start, '"', '"', inside);
    text_.literal(inside, member.key, quote);
    builder_.bytes(quote, '"', '"', colon);
    rules_.separator(colon, ':', value);
    constant(member.value, value, builder_.final_state());
    all.members.push_back({start, true, false});
  }
  builder_.object(from, std::move(all), to);
}

}  // namespace optima::sampling::grammar
