// Cuts the head off a graph: an embedding is made of hidden rows, and the head's matrix is often
// the largest of all. What no kept operation reads goes, from the end backwards.
#include <algorithm>

#include "graph/passes/passes.h"

namespace optima::graph {

Result<Graph> hidden_states(Graph graph) {
  if (graph.hidden < 0) return Status(Code::internal, "graph: no hidden rows");
  std::vector<bool> needed(graph.values.size(), false);
  needed[static_cast<size_t>(graph.hidden)] = true;
  std::vector<Op> kept;
  for (size_t i = graph.ops.size(); i-- > 0;) {
    const std::vector<ValueId> out = defines(graph.ops[i]);
    // What defines nothing writes KV.
    const bool keeps = out.empty() || std::any_of(out.begin(), out.end(), [&](ValueId id) {
                         return needed[static_cast<size_t>(id)];
                       });
    if (!keeps) continue;
    for (const ValueId id : reads(graph.ops[i])) needed[static_cast<size_t>(id)] = true;
    kept.push_back(std::move(graph.ops[i]));
  }
  std::reverse(kept.begin(), kept.end());
  graph.ops = std::move(kept);
  graph.result = graph.hidden;
  return graph;
}

}  // namespace optima::graph
