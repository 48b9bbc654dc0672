// Merges each matmul into the first one that reads the same value. The later one may move up
// because a matmul depends on its input alone.
#include <unordered_map>

#include "graph/passes/passes.h"

namespace optima::graph {

Graph group_matmuls(Graph graph) {
  std::vector<Op> ops;
  std::unordered_map<ValueId, size_t> first_reader;  // value -> index in ops
  for (Op& op : graph.ops) {
    auto* matmul = std::get_if<Matmul>(&op);
    if (matmul == nullptr) {
      ops.push_back(std::move(op));
      continue;
    }
    const auto [found, inserted] = first_reader.try_emplace(matmul->in, ops.size());
    if (inserted) {
      ops.push_back(std::move(op));
      continue;
    }
    auto& group = std::get<Matmul>(ops[found->second]);
    group.weights.insert(group.weights.end(), matmul->weights.begin(), matmul->weights.end());
    group.outs.insert(group.outs.end(), matmul->outs.begin(), matmul->outs.end());
  }
  graph.ops = std::move(ops);
  return graph;
}

}  // namespace optima::graph
