// A grammar as a recursive transition network over bytes: states with edges that read a byte, call
// another part of the network and return, or repeat a part a counted number of times; and objects,
// whose members may come in any order. Counts and the set of members seen live in the frames of
// the stack (stacks.h), so that {1,1000000000} or thirty members cost no more states than {1,2} or
// two.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace optima::sampling::grammar {

// What a grammar may cost. Reaching one is an error with the numbers, never a silent cut.
struct Limits {
  int64_t text_bytes = 4 << 20;      // of the schema, grammar or expression
  int64_t states = 1 << 18;          // of the compiled network
  int64_t nesting = 128;             // of groups in the text of a grammar or an expression
  int64_t depth = 1 << 16;           // of the stack while text is read: nested calls
  int64_t work = 1 << 16;            // stacks looked at for one byte
  int64_t mask_work = 1 << 24;       // for one mask
  int64_t cache_bytes = 64 << 20;    // stacks, transitions and masks kept; more starts afresh
  int64_t memory_bytes = 512 << 20;  // of the same within one call
};

using StateId = uint32_t;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

enum class EdgeKind : uint8_t {
  bytes,   // a byte in [low, high] leads to target
  skip,    // to target, reading nothing
  call,    // runs from `index` to a final state, then goes on at target
  repeat,  // repeats[index], then target
  object,  // objects[index], then target
};

struct Edge {
  EdgeKind kind;
  uint8_t low, high;
  StateId target;
  uint32_t index;
};

struct State {
  std::vector<Edge> edges;
  bool final = false;  // what was called from returns here
};

struct Repeat {
  StateId body, next;
  int64_t min, max;
};

struct Member {
  StateId start;  // reads name, colon and value
  bool required;
  bool many;  // stands for many names (additional ones): may come again
};

struct Object {
  StateId open;         // reads "{" and space
  StateId comma;        // between members
  StateId close;        // space and "}"
  StateId close_empty;  // "}"
  std::vector<Member> members;
  int64_t min, max;        // members in all
  int64_t required_count;  // of members; set by finish()
};

struct Program {
  std::vector<State> states;
  std::vector<Repeat> repeats;
  std::vector<Object> objects;
  StateId start = 0;

  // Nothing to do there but return: a call that goes on there needs no frame.
  bool returns_only(StateId state) const {
    return states[state].final && states[state].edges.empty();
  }
};

// Collects states. Past the limit of states nothing is added and finish() fails; loops whose length
// the text does not bound ask full().
class Builder {
 public:
  explicit Builder(const Limits& limits) : limits_(limits) {}

  StateId state();
  StateId final_state();
  void bytes(StateId from, uint8_t low, uint8_t high, StateId to);
  void skip(StateId from, StateId to);
  void call(StateId from, StateId start, StateId to);
  // Between min and max times what runs from `body` to a final state.
  void repeat(StateId from, const Repeat& repeat);
  void object(StateId from, Object object, StateId to);
  // The bytes of `text`, one after the other.
  void literal(StateId from, std::string_view text, StateId to);
  void set_final(StateId state) { program_.states[state].final = true; }

  bool full() const { return full_; }
  const Limits& limits() const { return limits_; }
  // For messages: the name of the part that starts at this state.
  void name(StateId start, std::string name);

  // Puts small called parts that call nothing themselves in the place of the call: then a run of
  // them needs no stack, and what can be known of a state without its stack is more.
  void inline_small_parts();

  // Removes what can never be completed, and checks that no part calls itself before it has read a
  // byte and that text can be completed at all.
  Result<Program> finish(StateId start);

 private:
  Limits limits_;
  Program program_;
  std::vector<std::pair<StateId, std::string>> names_;
  bool full_ = false;
};

}  // namespace optima::sampling::grammar
