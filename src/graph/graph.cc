// Building and printing graphs; the meaning of each operation stands in graph.h.
#include "graph/graph.h"

#include "base/text.h"

namespace optima::graph {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

int64_t bytes_of(const Weight& weight, int64_t rows) {
  const kernels::WeightTypeInfo* info =
      kernels::find_weight_type(static_cast<int32_t>(weight.type));
  return static_cast<int64_t>(kernels::row_bytes(*info, weight.columns)) * rows;
}

std::string list(const std::vector<ValueId>& ids) {
  std::string out;
  for (const ValueId id : ids) out += text(out.empty() ? "" : ", ", "%", id);
  return out;
}

std::string detail(const Op& op) {
  return std::visit(
      Overloaded{
          [](const Embed& o) { return text("embed ", o.table.name, " scale ", o.scale); },
          [](const RmsNorm& o) { return text("rms_norm group ", o.group_width); },
          [](const Matmul& o) {
            std::string out = "matmul";
            for (const Weight& w : o.weights)
              out += text(" ", w.name, "[", w.rows, "x", w.columns, "]");
            return out;
          },
          [](const Add&) { return text("add"); },
          [](const GatedAct& o) {
            return text(o.act == kernels::GateAct::silu ? "gated_act silu" : "gated_act gelu_tanh");
          },
          [](const Rope& o) { return text("rope table ", o.table); },
          [](const StoreKv& o) { return text("store_kv layer ", o.layer); },
          [](const Attention& o) {
            return text("attention layer ", o.layer, " heads ", o.heads, "/", o.kv_heads, " dim ",
                        o.head_dim, " window ", o.window);
          },
          [](const GatherOutputs&) { return text("gather_outputs"); },
      },
      op);
}

}  // namespace

ValueId Graph::define(int64_t width, Rows rows) {
  values.push_back({width, rows});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::embed(const Weight& table, float scale) {
  const ValueId out = define(table.columns, Rows::tokens);
  ops.emplace_back(Embed{table, scale, out});
  return out;
}

ValueId Graph::rms_norm(ValueId in, const float* weight, int64_t group_width, float epsilon) {
  const Value shape = values[static_cast<size_t>(in)];
  const ValueId out = define(shape.width, shape.rows);
  ops.emplace_back(RmsNorm{in, weight, group_width, epsilon, out});
  return out;
}

ValueId Graph::matmul(ValueId in, const Weight& weight) {
  const ValueId out = define(weight.rows, values[static_cast<size_t>(in)].rows);
  ops.emplace_back(Matmul{in, {weight}, {out}});
  return out;
}

ValueId Graph::add(ValueId a, ValueId b) {
  const Value shape = values[static_cast<size_t>(a)];
  const ValueId out = define(shape.width, shape.rows);
  ops.emplace_back(Add{a, b, out});
  return out;
}

ValueId Graph::gated_act(ValueId gate, ValueId up, kernels::GateAct act) {
  const Value shape = values[static_cast<size_t>(gate)];
  const ValueId out = define(shape.width, shape.rows);
  ops.emplace_back(GatedAct{gate, up, act, out});
  return out;
}

ValueId Graph::rope(ValueId in, int32_t table, int64_t head_dim) {
  const Value shape = values[static_cast<size_t>(in)];
  const ValueId out = define(shape.width, shape.rows);
  ops.emplace_back(Rope{in, table, head_dim, out});
  return out;
}

void Graph::store_kv(ValueId k, ValueId v, const StoreKv& where) {
  StoreKv op = where;
  op.k = k;
  op.v = v;
  ops.emplace_back(op);
}

ValueId Graph::attention(ValueId q, const Attention& how) {
  Attention op = how;
  op.q = q;
  op.out = define(how.heads * how.head_dim, Rows::tokens);
  ops.emplace_back(op);
  return op.out;
}

ValueId Graph::gather_outputs(ValueId in) {
  const ValueId out = define(values[static_cast<size_t>(in)].width, Rows::outputs);
  ops.emplace_back(GatherOutputs{in, out});
  return out;
}

int64_t Graph::weight_bytes_per_step() const {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    if (const auto* matmul = std::get_if<Matmul>(&op))
      for (const Weight& weight : matmul->weights) bytes += bytes_of(weight, weight.rows);
    if (const auto* embed = std::get_if<Embed>(&op)) bytes += bytes_of(embed->table, 1);
    if (const auto* norm = std::get_if<RmsNorm>(&op))
      bytes += norm->group_width * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

std::vector<ValueId> reads(const Op& op) {
  using Ids = std::vector<ValueId>;
  return std::visit(Overloaded{
                        [](const Embed&) { return Ids{}; },
                        [](const RmsNorm& o) { return Ids{o.in}; },
                        [](const Matmul& o) { return Ids{o.in}; },
                        [](const Add& o) {
                          return Ids{o.a, o.b};
                        },
                        [](const GatedAct& o) {
                          return Ids{o.gate, o.up};
                        },
                        [](const Rope& o) { return Ids{o.in}; },
                        [](const StoreKv& o) {
                          return Ids{o.k, o.v};
                        },
                        [](const Attention& o) { return Ids{o.q}; },
                        [](const GatherOutputs& o) { return Ids{o.in}; },
                    },
                    op);
}

std::vector<ValueId> defines(const Op& op) {
  using Ids = std::vector<ValueId>;
  return std::visit(Overloaded{
                        [](const Matmul& o) { return o.outs; },
                        [](const StoreKv&) { return Ids{}; },
                        [](const auto& o) { return Ids{o.out}; },
                    },
                    op);
}

std::string to_string(const Graph& graph) {
  std::string out;
  for (const Op& op : graph.ops) {
    const std::string defined = list(defines(op));
    out += text(defined, defined.empty() ? "" : " = ", detail(op), " (", list(reads(op)), ")\n");
  }
  return out;
}

}  // namespace optima::graph
