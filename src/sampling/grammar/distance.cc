// Knuth's generalisation of Dijkstra's algorithm to grammars (1977): states are settled in the
// order of their distance; what depends on a settled state is looked at again.
#include "sampling/grammar/distance.h"

#include <algorithm>
#include <queue>

#include "sampling/grammar/stacks.h"

namespace optima::sampling::grammar {

int64_t Distances::optional_members(const Object& object, std::span<const size_t> members,
                                    int64_t count) const {
  std::vector<int64_t> costs;
  int64_t cheapest_many = kUnlimited;
  for (const size_t i : members) {
    const int64_t cost = of_[object.members[i].start];
    if (object.members[i].many)
      cheapest_many = std::min(cheapest_many, cost);
    else
      costs.push_back(cost);
  }
  std::sort(costs.begin(), costs.end());
  int64_t total = distance_product(count, of_[object.comma]);
  for (int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<size_t>(i);
    const int64_t next = place < costs.size() ? costs[place] : kUnlimited;
    if (cheapest_many <= next)
      return distance_sum(total, distance_product(count - i, cheapest_many));
    total = distance_sum(total, next);
    if (total == kUnlimited) break;
  }
  return total;
}

int64_t Distances::of_object(const Object& object) const {
  int64_t total = of_[object.open], required = 0;
  std::vector<size_t> optional;
  for (size_t i = 0; i < object.members.size(); ++i) {
    if (object.members[i].required) {
      total = distance_sum(total, of_[object.members[i].start]);
      ++required;
    } else {
      optional.push_back(i);
    }
  }
  const int64_t more = std::max<int64_t>(object.min - required, 0);
  if (required + more == 0) return distance_sum(total, of_[object.close_empty]);
  total = distance_sum(total, optional_members(object, optional, more));
  // The members counted here have a comma each; the first of all has none.
  total = distance_sum(total, distance_product(required, of_[object.comma]));
  if (total != kUnlimited) total -= of_[object.comma];
  return distance_sum(total, of_[object.close]);
}

int64_t Distances::of_edge(const Program& program, const Edge& edge) const {
  const int64_t rest = of_[edge.target];
  switch (edge.kind) {
    case EdgeKind::bytes:
      return distance_sum(rest, 1);
    case EdgeKind::skip:
      return rest;
    case EdgeKind::call:
      return distance_sum(rest, of_[edge.index]);
    case EdgeKind::repeat: {
      const Repeat& repeat = program.repeats[edge.index];
      return distance_sum(rest, distance_product(repeat.min, of_[repeat.body]));
    }
    case EdgeKind::object:
      return distance_sum(rest, of_object(program.objects[edge.index]));
  }
  return kUnlimited;
}

Distances::Distances(const Program& program) : of_(program.states.size(), kUnlimited) {
  struct Dependent {
    StateId state;
    const Edge* edge;
  };
  std::vector<std::vector<Dependent>> dependents(of_.size());
  for (size_t i = 0; i < of_.size(); ++i) {
    for (const Edge& edge : program.states[i].edges) {
      const Dependent from{static_cast<StateId>(i), &edge};
      dependents[edge.target].push_back(from);
      if (edge.kind == EdgeKind::call) dependents[edge.index].push_back(from);
      if (edge.kind == EdgeKind::repeat)
        dependents[program.repeats[edge.index].body].push_back(from);
      if (edge.kind != EdgeKind::object) continue;
      const Object& object = program.objects[edge.index];
      for (const StateId part : {object.open, object.comma, object.close, object.close_empty})
        dependents[part].push_back(from);
      for (const Member& member : object.members) dependents[member.start].push_back(from);
    }
  }
  using Item = std::pair<int64_t, StateId>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  const auto improve = [&](StateId state, int64_t distance) {
    if (distance >= of_[state]) return;
    of_[state] = distance;
    open.emplace(distance, state);
  };
  for (size_t i = 0; i < of_.size(); ++i)
    if (program.states[i].final) improve(static_cast<StateId>(i), 0);
  while (!open.empty()) {
    const auto [distance, state] = open.top();
    open.pop();
    if (distance > of_[state]) continue;
    for (const Dependent& from : dependents[state])
      improve(from.state, of_edge(program, *from.edge));
  }
}

// Of a frame, until it has returned.
int64_t Stacks::distance_of_frame(FrameId id, const Distances& distances) const {
  if (is_state(id)) return distances.of(id);
  if (id <= hole()) return 0;
  const Frame& top = frame(id);
  if (top.kind == Frame::Kind::repeat) {
    const Repeat& repeat = program_.repeats[top.index];
    return distance_sum(distances.of(repeat.next),
                        distance_product(top.low, distances.of(repeat.body)));
  }
  const Object& object = program_.objects[top.index];
  int64_t total = 0, required = 0;
  std::vector<size_t> optional;
  for (size_t i = 0; i < object.members.size(); ++i) {
    const Member& member = object.members[i];
    if (!member.many && has_seen(top.seen, i)) continue;
    if (!member.required) {
      optional.push_back(i);
      continue;
    }
    total =
        distance_sum(total, distance_sum(distances.of(member.start), distances.of(object.comma)));
    ++required;
  }
  int64_t more = std::max<int64_t>(object.min - top.low - required, 0);
  if (top.kind == Frame::Kind::choose && required + more == 0) more = 1;
  if (top.kind == Frame::Kind::first && required + more == 0)
    return distances.of(object.close_empty);
  total = distance_sum(total, distances.optional_members(object, optional, more));
  // Where no comma comes before the first of them.
  if (top.kind != Frame::Kind::after && total != kUnlimited) total -= distances.of(object.comma);
  return distance_sum(total, distances.of(object.close));
}

int64_t Stacks::distance(SetId set, const Distances& distances) const {
  std::unordered_map<SetId, int64_t> known{{0, 0}};
  std::vector<SetId> work{set};
  while (!work.empty()) {
    const SetId now = work.back();
    int64_t least = now == 0 ? 0 : kUnlimited;
    bool ready = true;
    for (const Entry& entry : entries(now)) {
      const auto rest = known.find(entry.rest);
      if (rest == known.end()) {
        work.push_back(entry.rest);
        ready = false;
      } else {
        least =
            std::min(least, distance_sum(rest->second, distance_of_frame(entry.frame, distances)));
      }
    }
    if (!ready) continue;
    known[now] = least;
    work.pop_back();
  }
  return known[set];
}

}  // namespace optima::sampling::grammar
