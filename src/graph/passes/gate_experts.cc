// Makes gate, up and activation of experts one operation. It stands where the first of the products
// stood: there the input and the route are what both read.
#include <algorithm>
#include <optional>

#include "graph/passes/passes.h"
#include "kernels/matmul/matmul.h"

namespace optima::graph {
namespace {

bool alike(const Weight& a, const Weight& b) {
  return a.rows == b.rows && a.columns == b.columns &&
         kernels::uses_quantised_activations(a.type) == kernels::uses_quantised_activations(b.type);
}

bool alike(const ExpertMatmul& a, const ExpertMatmul& b) {
  return a.in == b.in && a.route == b.route && a.input == b.input && a.used == b.used &&
         std::equal(a.experts.begin(), a.experts.end(), b.experts.begin(), b.experts.end(),
                    [](const Weight& x, const Weight& y) { return alike(x, y); });
}

class ExpertGater {
 public:
  explicit ExpertGater(Graph graph)
      : graph_(std::move(graph)),
        readers_(graph_.values.size(), 0),
        products_(graph_.values.size()) {
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      for (const ValueId id : reads(graph_.ops[i])) ++readers_[static_cast<size_t>(id)];
      const auto* product = std::get_if<ExpertMatmul>(&graph_.ops[i]);
      if (product != nullptr) products_[static_cast<size_t>(product->out)] = i;
    }
    for (const ValueId id : {graph_.result, graph_.hidden})
      if (id >= 0) ++readers_[static_cast<size_t>(id)];
  }

  Graph run() && {
    std::vector<bool> replaced(graph_.ops.size(), false);
    std::vector<std::optional<GatedExperts>> found(graph_.ops.size());
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const auto* act = std::get_if<GatedAct>(&graph_.ops[i]);
      if (act == nullptr) continue;
      const std::optional<size_t> gate = product_for_one(act->gate);
      const std::optional<size_t> up = product_for_one(act->up);
      if (!gate || !up || !alike(product(*gate), product(*up))) continue;
      for (const size_t op : {*gate, *up, i}) replaced[op] = true;
      found[std::min(*gate, *up)] = {product(*gate), product(*up), act->act, act->out};
    }
    std::vector<Op> ops;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (found[i]) {
        ops.emplace_back(std::move(*found[i]));
      } else if (!replaced[i]) {
        ops.push_back(std::move(graph_.ops[i]));
      }
    }
    graph_.ops = std::move(ops);
    return std::move(graph_);
  }

 private:
  // The product that defines a value, if it has one reader.
  std::optional<size_t> product_for_one(ValueId id) const {
    const auto at = static_cast<size_t>(id);
    return readers_[at] == 1 ? products_[at] : std::nullopt;
  }
  const ExpertMatmul& product(size_t op) const { return std::get<ExpertMatmul>(graph_.ops[op]); }

  Graph graph_;
  std::vector<int64_t> readers_;                 // of each value
  std::vector<std::optional<size_t>> products_;  // the ExpertMatmul that defines a value
};

}  // namespace

Graph gate_experts(Graph graph) {
  return ExpertGater(std::move(graph)).run();
}

}  // namespace optima::graph
