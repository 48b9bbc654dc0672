// Building and printing graphs; the meaning of each operation stands in graph.h.
#include "graph/graph.h"

#include "base/overloaded.h"
#include "base/text.h"

namespace optima::graph {
namespace {

int64_t bytes_of(const Weight& weight, int64_t rows) {
  const kernels::WeightTypeInfo* info =
      kernels::find_weight_type(static_cast<int32_t>(weight.type));
  return static_cast<int64_t>(kernels::row_bytes(*info, weight.columns)) * rows;
}

int64_t bytes_of_used(const ExpertMatmul& op) {
  return op.used * bytes_of(op.experts.front(), op.experts.front().rows);
}

const char* gate_name(kernels::GateAct act) {
  static constexpr const char* kNames[] = {"silu", "gelu_tanh", "gelu_erf", "relu",
                                           "swiglu_clamped"};
  return kNames[static_cast<size_t>(act)];
}

const char* act_name(kernels::Act act) {
  static constexpr const char* kNames[] = {"silu", "gelu_tanh",    "gelu_erf",
                                           "relu", "relu_squared", "gelu_quick"};
  return kNames[static_cast<size_t>(act)];
}

std::string list(const std::vector<ValueId>& ids) {
  std::string out;
  for (const ValueId id : ids) out += text(out.empty() ? "" : ", ", "%", id);
  return out;
}

std::string reading(const KvRead& kv) {
  return text("layer ", kv.layer, " heads ", kv.heads, "/", kv.kv_heads, " dim ", kv.head_dim);
}

std::string attention_detail(const Attention& o) {
  std::string out = text("attention ", reading(o.kv),
                         o.mask == kernels::AttentionMask::causal ? " causal" : " all");
  if (o.window > 0) out += text(" window ", o.window);
  out += text(" scale ", o.scale);
  if (o.softcap > 0) out += text(" softcap ", o.softcap);
  if (o.sinks != nullptr) out += " sinks";
  if (o.rope >= 0) out += text(" rope ", o.rope);
  return out;
}

std::string experts_of(const ExpertMatmul& o) {
  const Weight& w = o.experts.front();
  return text(w.name, " and so on, ", o.experts.size(), " of [", w.rows, "x", w.columns, "], ",
              o.used, " used");
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
          [](const LayerNorm&) { return text("layer_norm"); },
          [](const Add&) { return text("add"); },
          [](const Mul&) { return text("mul"); },
          [](const AddBias&) { return text("add_bias"); },
          [](const AddPosition& o) { return text("add_position ", o.table.name); },
          [](const GatedAct& o) { return text("gated_act ", gate_name(o.act.act)); },
          [](const Activate& o) { return text("activate ", act_name(o.act)); },
          [](const Scale& o) { return text("scale ", o.factor); },
          [](const Softcap& o) { return text("softcap ", o.cap); },
          [](const Columns& o) { return text("columns from ", o.begin); },
          [](const Rope& o) { return text("rope table ", o.table); },
          [](const StoreKv& o) { return text("store_kv layer ", o.layer); },
          [](const Scores& o) { return text("scores ", reading(o.keys), " scale ", o.scale); },
          [](const Mask& o) {
            return o.kind == MaskKind::causal ? text("mask causal")
                                              : text("mask sliding ", o.window);
          },
          [](const Softmax& o) { return text("softmax", o.sinks != nullptr ? " with sinks" : ""); },
          [](const WeighValues& o) { return text("weigh_values ", reading(o.values)); },
          [](const Attention& o) { return attention_detail(o); },
          [](const Route& o) { return text("route to ", o.used); },
          [](const ExpertMatmul& o) { return text("expert_matmul ", experts_of(o)); },
          [](const GatedExperts& o) {
            return text("gated_experts ", gate_name(o.act.act), " ", o.gate.experts.front().name,
                        " ", experts_of(o.up));
          },
          [](const CombineExperts& o) { return text("combine_experts of ", o.used); },
          [](const GatherOutputs&) { return text("gather_outputs"); },
      },
      op);
}

}  // namespace

ValueId Graph::define(int64_t width, Rows rows) {
  values.push_back({width, rows});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::define_like(ValueId other) {
  const Value shape = values[static_cast<size_t>(other)];
  return define(shape.width, shape.rows);
}

ValueId Graph::embed(const Weight& table, float scale) {
  const ValueId out = define(table.columns, Rows::tokens);
  ops.emplace_back(Embed{table, scale, out});
  return out;
}

ValueId Graph::rms_norm(ValueId in, const float* weight, int64_t group_width, float epsilon) {
  const ValueId out = define_like(in);
  ops.emplace_back(RmsNorm{in, weight, group_width, epsilon, out});
  return out;
}

ValueId Graph::layer_norm(ValueId in, const float* weight, const float* bias, float epsilon) {
  const ValueId out = define_like(in);
  ops.emplace_back(LayerNorm{in, weight, bias, epsilon, out});
  return out;
}

ValueId Graph::matmul(ValueId in, const Weight& weight) {
  const ValueId out = define(weight.rows, values[static_cast<size_t>(in)].rows);
  ops.emplace_back(Matmul{in, {weight}, {out}});
  return out;
}

ValueId Graph::add(ValueId a, ValueId b) {
  const ValueId out = define_like(a);
  ops.emplace_back(Add{a, b, out});
  return out;
}

ValueId Graph::mul(ValueId a, ValueId b) {
  const ValueId out = define_like(a);
  ops.emplace_back(Mul{a, b, out});
  return out;
}

ValueId Graph::add_bias(ValueId in, const float* bias) {
  const ValueId out = define_like(in);
  ops.emplace_back(AddBias{in, bias, out});
  return out;
}

ValueId Graph::add_position(ValueId in, const Weight& table) {
  const ValueId out = define_like(in);
  ops.emplace_back(AddPosition{in, table, out});
  return out;
}

ValueId Graph::gated_act(ValueId gate, ValueId up, const kernels::GateActParams& act) {
  const ValueId out = define_like(gate);
  ops.emplace_back(GatedAct{gate, up, act, out});
  return out;
}

ValueId Graph::activate(ValueId in, kernels::Act act) {
  const ValueId out = define_like(in);
  ops.emplace_back(Activate{in, act, out});
  return out;
}

ValueId Graph::scale(ValueId in, float factor) {
  const ValueId out = define_like(in);
  ops.emplace_back(Scale{in, factor, out});
  return out;
}

ValueId Graph::softcap(ValueId in, float cap) {
  const ValueId out = define_like(in);
  ops.emplace_back(Softcap{in, cap, out});
  return out;
}

ValueId Graph::columns(ValueId in, int64_t begin, int64_t width) {
  const ValueId out = define(width, values[static_cast<size_t>(in)].rows);
  ops.emplace_back(Columns{in, begin, out});
  return out;
}

ValueId Graph::rope(ValueId in, int32_t table, int64_t head_dim) {
  const ValueId out = define_like(in);
  ops.emplace_back(Rope{in, table, head_dim, out});
  return out;
}

void Graph::store_kv(ValueId k, ValueId v, const StoreKv& where) {
  StoreKv op = where;
  op.k = k;
  op.v = v;
  ops.emplace_back(op);
}

ValueId Graph::scores(ValueId q, const KvRead& keys, float scale) {
  const ValueId out = define(kPositions, Rows::tokens);
  ops.emplace_back(Scores{q, keys, scale, out});
  return out;
}

ValueId Graph::mask(ValueId scores, MaskKind kind, int64_t window) {
  const ValueId out = define_like(scores);
  ops.emplace_back(Mask{scores, kind, window, out});
  return out;
}

ValueId Graph::softmax(ValueId scores, const float* sinks) {
  const ValueId out = define_like(scores);
  ops.emplace_back(Softmax{scores, sinks, out});
  return out;
}

ValueId Graph::weigh_values(ValueId weights, const KvRead& of) {
  const ValueId out = define(of.heads * of.head_dim, Rows::tokens);
  ops.emplace_back(WeighValues{weights, of, out});
  return out;
}

ValueId Graph::route(ValueId in, const Route& how) {
  Route op = how;
  op.in = in;
  op.out = define(2 * how.used, values[static_cast<size_t>(in)].rows);
  ops.emplace_back(op);
  return op.out;
}

ValueId Graph::expert_matmul(ValueId in, ValueId route, ExpertMatmul what) {
  what.in = in;
  what.route = route;
  what.out = define(what.used * what.experts.front().rows, values[static_cast<size_t>(in)].rows);
  const ValueId out = what.out;
  ops.emplace_back(std::move(what));
  return out;
}

ValueId Graph::combine_experts(ValueId in, ValueId route, int64_t used) {
  const Value shape = values[static_cast<size_t>(in)];
  const ValueId out = define(shape.width / used, shape.rows);
  ops.emplace_back(CombineExperts{in, route, used, out});
  return out;
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
    if (const auto* experts = std::get_if<ExpertMatmul>(&op)) bytes += bytes_of_used(*experts);
    if (const auto* gated = std::get_if<GatedExperts>(&op))
      bytes += bytes_of_used(gated->gate) + bytes_of_used(gated->up);
    if (const auto* embed = std::get_if<Embed>(&op)) bytes += bytes_of(embed->table, 1);
    if (const auto* norm = std::get_if<RmsNorm>(&op); norm && norm->weight != nullptr)
      bytes += norm->group_width * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

std::vector<ValueId> reads(const Op& op) {
  using Ids = std::vector<ValueId>;
  return std::visit(Overloaded{
                        [](const Embed&) { return Ids{}; },
                        [](const Add& o) {
                          return Ids{o.a, o.b};
                        },
                        [](const Mul& o) {
                          return Ids{o.a, o.b};
                        },
                        [](const GatedAct& o) {
                          return Ids{o.gate, o.up};
                        },
                        [](const StoreKv& o) {
                          return Ids{o.k, o.v};
                        },
                        [](const Scores& o) { return Ids{o.q}; },
                        [](const Attention& o) { return Ids{o.q}; },
                        [](const ExpertMatmul& o) {
                          return Ids{o.in, o.route};
                        },
                        [](const GatedExperts& o) {
                          return Ids{o.gate.in, o.gate.route};
                        },
                        [](const CombineExperts& o) {
                          return Ids{o.in, o.route};
                        },
                        [](const auto& o) { return Ids{o.in}; },
                    },
                    op);
}

ValueId rewritten(const Op& op) {
  return std::visit(Overloaded{
                        [](const AddBias& o) { return o.in; },
                        [](const AddPosition& o) { return o.in; },
                        [](const Activate& o) { return o.in; },
                        [](const Scale& o) { return o.in; },
                        [](const Softcap& o) { return o.in; },
                        [](const Rope& o) { return o.in; },
                        [](const Mask& o) { return o.in; },
                        [](const Softmax& o) { return o.in; },
                        [](const auto&) { return ValueId{-1}; },
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

std::string to_string(const Op& op) {
  const std::string defined = list(defines(op));
  return text(defined, defined.empty() ? "" : " = ", detail(op), " (", list(reads(op)), ")");
}

std::string to_string(const Graph& graph) {
  std::string out;
  for (const Op& op : graph.ops) out += to_string(op) + "\n";
  return out;
}

}  // namespace optima::graph
