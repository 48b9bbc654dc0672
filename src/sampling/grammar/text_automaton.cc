// Products and complements, by exploring from the start only what is reached. The complement needs
// a deterministic automaton: the subsets are built over the classes of code points that no edge of
// a subset tells apart.
#include "sampling/grammar/text_automaton.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace optima::sampling::grammar {
namespace {

Status too_large(std::string_view what, int64_t have, int64_t limit) {
  return {
      Code::unsupported, text("a pattern needs more than ", limit, ' ', what), {have, -1, limit}};
}

Status check_size(const TextAutomaton& automaton, int64_t edges) {
  const auto states = static_cast<int64_t>(automaton.states.size());
  if (states > kAutomatonStatesMax) return too_large("states", states, kAutomatonStatesMax);
  if (edges > kAutomatonEdgesMax) return too_large("edges", edges, kAutomatonEdgesMax);
  return {};
}

// Borders between code points that some edge of these states tells apart: class i is
// [borders[i], borders[i + 1]).
std::vector<uint32_t> borders_of(const TextAutomaton& automaton,
                                 const std::vector<uint32_t>& states) {
  std::vector<uint32_t> borders{0, kCodePointMax + 1};
  for (const uint32_t state : states)
    for (const TextAutomaton::Edge& edge : automaton.states[state].edges)
      for (const CodePointRange range : edge.set.ranges()) {
        borders.push_back(range.low);
        borders.push_back(range.high + 1);
      }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace

bool TextAutomaton::matches(std::string_view text) const {
  std::vector<uint8_t> now(states.size()), next(states.size());
  now[0] = 1;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.byte_count == 0) return false;
    at += point.byte_count;
    std::fill(next.begin(), next.end(), uint8_t{0});
    for (size_t i = 0; i < states.size(); ++i) {
      if (!now[i]) continue;
      for (const Edge& edge : states[i].edges)
        if (edge.set.contains(point.value)) next[edge.target] = 1;
    }
    now.swap(next);
  }
  for (size_t i = 0; i < states.size(); ++i)
    if (now[i] && states[i].final) return true;
  return false;
}

TextAutomaton any_text() {
  return {{{{{CodePointSet::all(), 0}}, true}}};
}

TextAutomaton literal_text(std::string_view text) {
  TextAutomaton result;
  result.states.emplace_back();
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    at += std::max(point.byte_count, 1u);
    const auto next = static_cast<uint32_t>(result.states.size());
    result.states.back().edges.push_back({CodePointSet::of(point.value), next});
    result.states.emplace_back();
  }
  result.states.back().final = true;
  return result;
}

TextAutomaton other_than(const std::vector<std::string>& texts) {
  struct Node {
    std::map<uint32_t, uint32_t> children;
    bool listed = false;
  };
  std::vector<Node> trie(1);
  for (const std::string& text : texts) {
    uint32_t node = 0;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = decode_utf8(text, at);
      at += std::max(point.byte_count, 1u);
      const auto fresh = static_cast<uint32_t>(trie.size());
      const auto [child, is_new] = trie[node].children.try_emplace(point.value, fresh);
      node = child->second;
      if (is_new) trie.emplace_back();
    }
    trie[node].listed = true;
  }
  TextAutomaton result;
  const auto other = static_cast<uint32_t>(trie.size());
  for (const Node& node : trie) {
    TextAutomaton::State state;
    state.final = !node.listed;
    std::vector<CodePointRange> known;
    for (const auto& [point, child] : node.children) {
      state.edges.push_back({CodePointSet::of(point), child});
      known.push_back({point, point});
    }
    state.edges.push_back({CodePointSet(std::move(known)).complement(), other});
    result.states.push_back(std::move(state));
  }
  result.states.push_back({{{CodePointSet::all(), other}}, true});
  return result;
}

Result<TextAutomaton> intersection(const TextAutomaton& a, const TextAutomaton& b) {
  TextAutomaton result;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto state_of = [&](uint32_t left, uint32_t right) {
    const auto fresh = static_cast<uint32_t>(pairs.size());
    const auto [found, is_new] = known.try_emplace({left, right}, fresh);
    if (is_new) {
      pairs.emplace_back(left, right);
      result.states.emplace_back();
      result.states.back().final = a.states[left].final && b.states[right].final;
    }
    return found->second;
  };
  state_of(0, 0);
  int64_t edges = 0;
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    const auto [left, right] = pairs[i];
    for (const TextAutomaton::Edge& x : a.states[left].edges) {
      for (const TextAutomaton::Edge& y : b.states[right].edges) {
        CodePointSet both = x.set.intersected(y.set);
        ++edges;
        if (both.empty()) continue;
        const uint32_t target = state_of(x.target, y.target);
        result.states[i].edges.push_back({std::move(both), target});
      }
    }
    OPTIMA_TRY(check_size(result, edges));
  }
  return result;
}

Result<TextAutomaton> of_length(const TextAutomaton& automaton, int64_t min, int64_t max) {
  TextAutomaton result;
  const int64_t counted = max == kUnlimited ? min : max;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> known;
  std::vector<std::pair<uint32_t, int64_t>> pairs;
  const auto state_of = [&](uint32_t state, int64_t length) {
    const auto fresh = static_cast<uint32_t>(pairs.size());
    const auto [found, is_new] = known.try_emplace({state, length}, fresh);
    if (is_new) {
      pairs.emplace_back(state, length);
      result.states.emplace_back();
      result.states.back().final = automaton.states[state].final && length >= min;
    }
    return found->second;
  };
  state_of(0, 0);
  int64_t edges = 0;
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    const auto [state, length] = pairs[i];
    if (length >= max) continue;
    for (const TextAutomaton::Edge& edge : automaton.states[state].edges) {
      const uint32_t target = state_of(edge.target, std::min(length + 1, counted));
      result.states[i].edges.push_back({edge.set, target});
      ++edges;
    }
    OPTIMA_TRY(check_size(result, edges));
  }
  return result;
}

Result<TextAutomaton> complement(const TextAutomaton& automaton) {
  TextAutomaton result;
  std::map<std::vector<uint32_t>, uint32_t> known;
  std::vector<std::vector<uint32_t>> subsets;
  const auto state_of = [&](const std::vector<uint32_t>& subset) {
    const auto fresh = static_cast<uint32_t>(subsets.size());
    const auto [found, is_new] = known.try_emplace(subset, fresh);
    if (is_new) {
      subsets.push_back(subset);
      result.states.emplace_back();
      result.states.back().final = std::none_of(subset.begin(), subset.end(), [&](uint32_t state) {
        return automaton.states[state].final;
      });
    }
    return found->second;
  };
  state_of({0});
  int64_t edges = 0;
  for (uint32_t i = 0; i < subsets.size(); ++i) {
    const std::vector<uint32_t> subset = subsets[i];
    const std::vector<uint32_t> borders = borders_of(automaton, subset);
    std::map<uint32_t, std::vector<CodePointRange>> targets;
    for (size_t part = 0; part + 1 < borders.size(); ++part) {
      std::vector<uint32_t> next;
      for (const uint32_t state : subset)
        for (const TextAutomaton::Edge& edge : automaton.states[state].edges)
          if (edge.set.contains(borders[part])) next.push_back(edge.target);
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      targets[state_of(next)].push_back({borders[part], borders[part + 1] - 1});
      ++edges;
    }
    for (auto& [target, ranges] : targets)
      result.states[i].edges.push_back({CodePointSet(std::move(ranges)), target});
    OPTIMA_TRY(check_size(result, edges));
  }
  return result;
}

bool is_empty(const TextAutomaton& automaton) {
  std::vector<uint8_t> reached(automaton.states.size());
  std::vector<uint32_t> work{0};
  reached[0] = 1;
  while (!work.empty()) {
    const uint32_t state = work.back();
    work.pop_back();
    if (automaton.states[state].final) return false;
    for (const TextAutomaton::Edge& edge : automaton.states[state].edges) {
      if (edge.set.empty() || reached[edge.target]) continue;
      reached[edge.target] = 1;
      work.push_back(edge.target);
    }
  }
  return true;
}

}  // namespace optima::sampling::grammar
