// Building a network. Adding never fails; finish() tells. inline_small_parts() copies a called part
// when it is small and calls nothing, a few rounds, so that parts of parts are reached.
#include "sampling/grammar/program.h"

#include <algorithm>
#include <unordered_map>

namespace optima::sampling::grammar {
namespace {

constexpr size_t kSmallPart = 48;  // states
constexpr int kInlineRounds = 3;

// The states reached from `start` when none of them calls; empty when one does or there are many.
std::vector<StateId> plain_part(const Program& program, StateId start) {
  std::vector<StateId> part{start};
  for (size_t i = 0; i < part.size(); ++i) {
    for (const Edge& edge : program.states[part[i]].edges) {
      if (edge.kind != EdgeKind::bytes && edge.kind != EdgeKind::skip) return {};
      if (std::find(part.begin(), part.end(), edge.target) != part.end()) continue;
      if (part.size() == kSmallPart) return {};
      part.push_back(edge.target);
    }
  }
  return part;
}

}  // namespace

StateId Builder::state() {
  if (static_cast<int64_t>(program_.states.size()) >= limits_.states) {
    full_ = true;
    return 0;
  }
  program_.states.emplace_back();
  return static_cast<StateId>(program_.states.size() - 1);
}

StateId Builder::final_state() {
  const StateId state_id = state();
  if (!full_) set_final(state_id);
  return state_id;
}

void Builder::bytes(StateId from, uint8_t low, uint8_t high, StateId to) {
  if (full_) return;
  program_.states[from].edges.push_back({EdgeKind::bytes, low, high, to, 0});
}

void Builder::skip(StateId from, StateId to) {
  if (full_ || from == to) return;
  program_.states[from].edges.push_back({EdgeKind::skip, 0, 0, to, 0});
}

void Builder::call(StateId from, StateId start, StateId to) {
  if (full_) return;
  program_.states[from].edges.push_back({EdgeKind::call, 0, 0, to, start});
}

void Builder::repeat(StateId from, const Repeat& repeat) {
  if (full_) return;
  const auto index = static_cast<uint32_t>(program_.repeats.size());
  program_.repeats.push_back(repeat);
  program_.states[from].edges.push_back({EdgeKind::repeat, 0, 0, repeat.next, index});
}

void Builder::object(StateId from, Object object, StateId to) {
  if (full_) return;
  const auto index = static_cast<uint32_t>(program_.objects.size());
  program_.objects.push_back(std::move(object));
  program_.states[from].edges.push_back({EdgeKind::object, 0, 0, to, index});
}

void Builder::literal(StateId from, std::string_view text, StateId to) {
  if (text.empty()) return skip(from, to);
  for (size_t i = 0; i < text.size() && !full_; ++i) {
    const StateId next = i + 1 == text.size() ? to : state();
    const auto byte = static_cast<uint8_t>(text[i]);
    bytes(from, byte, byte, next);
    from = next;
  }
}

void Builder::name(StateId start, std::string name) {
  names_.emplace_back(start, std::move(name));
}

void Builder::inline_small_parts() {
  for (int round = 0; round < kInlineRounds; ++round) {
    std::unordered_map<StateId, std::vector<StateId>> parts;
    const size_t count = program_.states.size();
    for (size_t from = 0; from < count && !full_; ++from) {
      for (size_t i = 0; i < program_.states[from].edges.size() && !full_; ++i) {
        const Edge edge = program_.states[from].edges[i];
        if (edge.kind != EdgeKind::call) continue;
        auto [found, is_new] = parts.try_emplace(edge.index);
        if (is_new) found->second = plain_part(program_, edge.index);
        const std::vector<StateId>& part = found->second;
        // Inlining is a saving, not a need: it stops well before the limit of states.
        if (part.empty() ||
            static_cast<int64_t>(program_.states.size() + part.size()) > limits_.states / 2)
          continue;
        std::unordered_map<StateId, StateId> copies;
        for (const StateId original : part) copies[original] = state();
        for (const StateId original : part) {
          const State source = program_.states[original];
          const StateId copy = copies[original];
          for (const Edge& inner : source.edges) {
            Edge moved = inner;
            moved.target = copies[inner.target];
            program_.states[copy].edges.push_back(moved);
          }
          if (source.final) skip(copy, edge.target);
        }
        program_.states[from].edges[i] = {EdgeKind::skip, 0, 0, copies[edge.index], 0};
      }
    }
  }
}

}  // namespace optima::sampling::grammar
