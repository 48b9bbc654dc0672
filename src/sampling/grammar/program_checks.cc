// What a finished network is checked for. Productive: a final state can be reached, so that a state
// met while text is read can always be completed; edges to others are removed. Nullable: a final
// state can be reached without a byte. Left recursion, a part that runs itself before it has read
// a byte, would push for ever: it is refused, by name. All by work lists, no recursion: networks
// come from hosts' texts.
#include <algorithm>
#include <functional>

#include "base/text.h"
#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {
namespace {

constexpr int64_t kNullableRepeatMax = 256;

using Marks = std::vector<uint8_t>;

// The states that an edge needs to hold before its own state can.
template <typename Visit>
void for_each_need(const Program& program, const Edge& edge, const Visit& visit) {
  visit(edge.target);
  if (edge.kind == EdgeKind::call) visit(edge.index);
  if (edge.kind == EdgeKind::repeat) visit(program.repeats[edge.index].body);
  if (edge.kind == EdgeKind::object)
    for (const Member& member : program.objects[edge.index].members) visit(member.start);
}

// The least fixed point: a state is marked when it is final or `holds` for one of its edges.
template <typename Holds>
Marks least_fixed_point(const Program& program, const Holds& holds) {
  const size_t count = program.states.size();
  struct Dependent {
    StateId state;
    uint32_t edge;
  };
  std::vector<std::vector<Dependent>> dependents(count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t number = 0;
    for (const Edge& edge : program.states[i].edges) {
      const Dependent dependent{static_cast<StateId>(i), number++};
      for_each_need(program, edge, [&](StateId need) { dependents[need].push_back(dependent); });
    }
  }
  Marks marks(count);
  std::vector<StateId> changed;
  const auto mark = [&](StateId id) {
    marks[id] = 1;
    changed.push_back(id);
  };
  for (size_t i = 0; i < count; ++i)
    if (program.states[i].final) mark(static_cast<StateId>(i));
  while (!changed.empty()) {
    const StateId id = changed.back();
    changed.pop_back();
    for (const Dependent& dependent : dependents[id]) {
      if (marks[dependent.state]) continue;
      if (holds(program.states[dependent.state].edges[dependent.edge], marks))
        mark(dependent.state);
    }
  }
  return marks;
}

bool completable(const Object& object, const Marks& productive) {
  int64_t possible = 0, required = 0;
  for (const Member& member : object.members) {
    if (!productive[member.start]) {
      if (member.required) return false;
      continue;
    }
    required += member.required;
    possible = member.many ? kUnlimited : possible == kUnlimited ? possible : possible + 1;
  }
  return possible >= object.min && required <= object.max && object.min <= object.max;
}

bool productive_edge(const Program& program, const Edge& edge, const Marks& marks) {
  if (!marks[edge.target]) return false;
  switch (edge.kind) {
    case EdgeKind::bytes:
    case EdgeKind::skip:
      return true;
    case EdgeKind::call:
      return marks[edge.index] != 0;
    case EdgeKind::repeat: {
      const Repeat& repeat = program.repeats[edge.index];
      return repeat.min <= repeat.max && (repeat.min == 0 || marks[repeat.body]);
    }
    case EdgeKind::object:
      return completable(program.objects[edge.index], marks);
  }
  return false;
}

bool nullable_edge(const Program& program, const Edge& edge, const Marks& marks) {
  if (edge.kind == EdgeKind::bytes || edge.kind == EdgeKind::object || !marks[edge.target])
    return false;
  if (edge.kind == EdgeKind::call) return marks[edge.index] != 0;
  if (edge.kind == EdgeKind::skip) return true;
  const Repeat& repeat = program.repeats[edge.index];
  return repeat.min == 0 || marks[repeat.body];
}

void prune(Program& program, const Marks& productive) {
  for (State& state : program.states)
    std::erase_if(state.edges,
                  [&](const Edge& edge) { return !productive_edge(program, edge, productive); });
  for (Object& object : program.objects)
    std::erase_if(object.members, [&](const Member& member) { return !productive[member.start]; });
  for (Repeat& repeat : program.repeats)
    if (!productive[repeat.body]) repeat.max = 0;
  for (Object& object : program.objects)
    object.required_count = std::count_if(object.members.begin(), object.members.end(),
                                          [](const Member& member) { return member.required; });
}

// States that do nothing but go on to another are left out of the way. A call that goes on at a
// state which would only return is then seen to be the last of its part (stacks.h).
void shorten(Program& program) {
  constexpr StateId kUnknown = ~StateId{0}, kOnPath = kUnknown - 1;
  std::vector<StateId> beyond(program.states.size(), kUnknown);
  std::vector<StateId> path;
  for (size_t i = 0; i < beyond.size(); ++i) {
    auto at = static_cast<StateId>(i);
    for (path.clear(); beyond[at] == kUnknown; at = program.states[at].edges[0].target) {
      const State& state = program.states[at];
      if (state.final || state.edges.size() != 1 || state.edges[0].kind != EdgeKind::skip) break;
      beyond[at] = kOnPath;
      path.push_back(at);
    }
    const StateId end = beyond[at] < kOnPath ? beyond[at] : at;
    for (const StateId passed : path) beyond[passed] = end;
    beyond[end] = end;
  }
  for (State& state : program.states) {
    for (Edge& edge : state.edges) {
      edge.target = beyond[edge.target];
      if (edge.kind == EdgeKind::call) edge.index = beyond[edge.index];
    }
  }
  for (Repeat& repeat : program.repeats) {
    repeat.body = beyond[repeat.body];
    repeat.next = beyond[repeat.next];
  }
  program.start = beyond[program.start];
}

struct Step {
  StateId target;
  bool pushes;
};

void steps_without_bytes(const Program& program, StateId from, const Marks& nullable,
                         std::vector<Step>& out) {
  out.clear();
  for (const Edge& edge : program.states[from].edges) {
    if (edge.kind == EdgeKind::skip) out.push_back({edge.target, false});
    if (edge.kind == EdgeKind::call) {
      out.push_back({edge.index, true});
      if (nullable[edge.index]) out.push_back({edge.target, false});
    }
    if (edge.kind == EdgeKind::repeat) {
      const Repeat& repeat = program.repeats[edge.index];
      if (repeat.max > 0) out.push_back({repeat.body, true});
      if (repeat.min == 0 || nullable[repeat.body]) out.push_back({edge.target, false});
    }
  }
}

// The strongly connected component of every state in the graph of steps that read nothing
// (Tarjan 1972, with the stack of calls spelled out).
class Components {
 public:
  Components(const Program& program, const Marks& nullable)
      : program_(program),
        nullable_(nullable),
        of_(program.states.size()),
        index_(program.states.size()),
        low_(program.states.size()) {
    for (size_t i = 0; i < of_.size(); ++i)
      if (index_[i] == 0) visit(static_cast<StateId>(i));
  }
  uint32_t of(StateId state) const { return of_[state]; }

 private:
  struct Call {
    StateId state;
    std::vector<Step> steps;
    size_t at = 0;
  };

  void enter(StateId state) {
    index_[state] = low_[state] = ++counter_;
    open_.push_back(state);
    calls_.push_back({state, {}, 0});
    steps_without_bytes(program_, state, nullable_, calls_.back().steps);
  }

  void visit(StateId root) {
    enter(root);
    while (!calls_.empty()) {
      Call& call = calls_.back();
      const StateId state = call.state;
      if (call.at < call.steps.size()) {
        const StateId target = call.steps[call.at++].target;
        if (index_[target] == 0)
          enter(target);
        else if (of_[target] == 0)
          low_[state] = std::min(low_[state], index_[target]);
        continue;
      }
      calls_.pop_back();
      if (!calls_.empty())
        low_[calls_.back().state] = std::min(low_[calls_.back().state], low_[state]);
      if (low_[state] != index_[state]) continue;
      ++components_;
      StateId member;
      do {
        member = open_.back();
        open_.pop_back();
        of_[member] = components_;
      } while (member != state);
    }
  }

  const Program& program_;
  const Marks& nullable_;
  std::vector<uint32_t> of_, index_, low_;  // 0 = not yet
  std::vector<StateId> open_;
  std::vector<Call> calls_;
  uint32_t counter_ = 0, components_ = 0;
};

Status check_left_recursion(const Program& program, const Marks& nullable,
                            const std::vector<std::pair<StateId, std::string>>& names) {
  const Components components(program, nullable);
  std::vector<Step> steps;
  for (size_t i = 0; i < program.states.size(); ++i) {
    const auto from = static_cast<StateId>(i);
    steps_without_bytes(program, from, nullable, steps);
    for (const Step& step : steps) {
      if (!step.pushes || components.of(step.target) != components.of(from)) continue;
      std::string what = "a part of the grammar";
      for (const auto& [start, name] : names)
        if (components.of(start) == components.of(from)) what = name;
      return {Code::unsupported,
              text(what, " is left-recursive: it contains itself before it has read a byte")};
    }
  }
  return {};
}

// An empty pass through a body adds nothing: the fewest passes may be left out.
Status allow_empty_passes(Program& program, const Marks& nullable) {
  for (Repeat& repeat : program.repeats) {
    if (!nullable[repeat.body]) continue;
    repeat.min = 0;
    if (repeat.max == kUnlimited || repeat.max <= kNullableRepeatMax) continue;
    return {Code::unsupported,
            text("a repetition of up to ", repeat.max, " of something that may be empty: at most ",
                 kNullableRepeatMax, " are supported"),
            {repeat.max, -1, kNullableRepeatMax}};
  }
  return {};
}

}  // namespace

Result<Program> Builder::finish(StateId start) {
  if (full_)
    return Status(Code::unsupported,
                  text("the grammar needs more than ", limits_.states, " states"),
                  {-1, -1, limits_.states});
  Program program = std::move(program_);
  program_ = {};
  program.start = start;
  const Marks productive = least_fixed_point(program, [&](const Edge& edge, const Marks& marks) {
    return productive_edge(program, edge, marks);
  });
  if (!productive[start])
    return Status(Code::invalid_argument, "no text satisfies the grammar: it can never end");
  prune(program, productive);
  const Marks nullable = least_fixed_point(program, [&](const Edge& edge, const Marks& marks) {
    return nullable_edge(program, edge, marks);
  });
  OPTIMA_TRY(check_left_recursion(program, nullable, names_));
  OPTIMA_TRY(allow_empty_passes(program, nullable));
  shorten(program);
  return program;
}

}  // namespace optima::sampling::grammar
