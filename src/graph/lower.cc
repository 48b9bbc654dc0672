// Graph -> Program. Three walks over the operations: which step each belongs to, where each value
// lies (lifetimes counted in steps), and the steps themselves. An operation that works in place has
// a result that is the same block under another name.
#include <algorithm>
#include <optional>

#include "base/overloaded.h"
#include "base/text.h"
#include "graph/arena.h"
#include "graph/program.h"
#include "kernels/matmul/matmul.h"

namespace optima::graph {
namespace {

bool is_wide(const Op& op) {
  return std::holds_alternative<Matmul>(op) || std::holds_alternative<Attention>(op) ||
         std::holds_alternative<ExpertMatmul>(op) || std::holds_alternative<GatedExperts>(op);
}

bool is_part_of_attention(const Op& op) {
  return std::holds_alternative<Scores>(op) || std::holds_alternative<Mask>(op) ||
         std::holds_alternative<Softmax>(op) || std::holds_alternative<WeighValues>(op);
}

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options) : graph_(graph), options_(options) {}

  Result<Program> run() {
    OPTIMA_TRY(check());
    number_steps();
    place_values();
    for (size_t i = 0; i < graph_.ops.size(); ++i) emit(graph_.ops[i], step_of_op_[i]);
    finish();
    return std::move(program_);
  }

 private:
  // Every value is defined before it is read, and layers that touch KV have a place there.
  Status check() const {
    // A value that was rewritten in place is no longer there under its old name.
    std::vector<bool> defined(graph_.values.size(), false);
    for (const Op& op : graph_.ops) {
      for (const ValueId id : reads(op))
        if (!defined[static_cast<size_t>(id)])
          return Status(Code::internal,
                        text("graph: value %", id, " is read where it is not defined"));
      if (const ValueId gone = rewritten(op); gone >= 0) defined[static_cast<size_t>(gone)] = false;
      for (const ValueId id : defines(op)) defined[static_cast<size_t>(id)] = true;
      const auto* store = std::get_if<StoreKv>(&op);
      const auto* attention = std::get_if<Attention>(&op);
      const int32_t layer = store != nullptr ? store->layer : attention ? attention->kv.layer : -1;
      if (layer >= 0 && static_cast<size_t>(layer) >= options_.kv.size())
        return Status(Code::internal, text("graph: layer ", layer, " has no KV place"));
      if (is_part_of_attention(op))
        return Status(Code::internal,
                      text("graph: '", to_string(op),
                           "' belongs to an attention in no form that is computed"));
    }
    if (graph_.result < 0) return Status(Code::internal, "graph: no result");
    return {};
  }

  Rows rows_of(const Op& op) const {
    const std::vector<ValueId> out = defines(op);
    const ValueId id = out.empty() ? reads(op).front() : out.front();
    return graph_.values[static_cast<size_t>(id)].rows;
  }

  bool needs_quantised(const Matmul& op) const {
    return options_.activations == Activations::quantised &&
           std::any_of(op.weights.begin(), op.weights.end(),
                       [](const Weight& w) { return kernels::uses_quantised_activations(w.type); });
  }

  // The row step that takes row-local work of `rows` now: the last one, or a new one.
  void join_row_step(Rows rows) {
    if (step_rows_.empty() || step_wide_.back() || step_rows_.back() != rows) {
      step_rows_.push_back(rows);
      step_wide_.push_back(false);
    }
  }
  int32_t last_step() const { return static_cast<int32_t>(step_rows_.size()) - 1; }

  void number_steps() {
    for (const Op& op : graph_.ops) {
      const Rows rows = rows_of(op);
      const auto* matmul = std::get_if<Matmul>(&op);
      if (matmul != nullptr && needs_quantised(*matmul)) join_row_step(rows);
      if (is_wide(op)) {
        step_rows_.push_back(rows);
        step_wide_.push_back(true);
      } else {
        join_row_step(rows);
      }
      step_of_op_.push_back(last_step());
    }
  }

  ValueId root(ValueId id) const {
    while (alias_[static_cast<size_t>(id)] >= 0) id = alias_[static_cast<size_t>(id)];
    return id;
  }

  int64_t rows_max(Rows rows) const {
    return rows == Rows::tokens ? options_.tokens_max : options_.outputs_max;
  }

  void touch(size_t block, int32_t step) {
    blocks_[block].first_step = std::min(blocks_[block].first_step, step);
    blocks_[block].last_step = std::max(blocks_[block].last_step, step);
  }

  size_t new_block(int64_t bytes, int32_t first_step, int32_t last_step_alive) {
    blocks_.push_back({bytes, first_step, last_step_alive, 0});
    return blocks_.size() - 1;
  }

  void place_values() {
    alias_.assign(graph_.values.size(), -1);
    for (const Op& op : graph_.ops)
      if (const ValueId in = rewritten(op); in >= 0)
        alias_[static_cast<size_t>(defines(op).front())] = in;
    value_block_.assign(graph_.values.size(), std::nullopt);
    quantised_block_.assign(graph_.ops.size(), std::nullopt);
    const int32_t end = last_step();
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      const int32_t step = step_of_op_[i];
      for (const ValueId id : defines(op)) use_value(id, step);
      for (const ValueId id : reads(op)) {
        use_value(id, step);
        // A head tile may be run again: what it reads of the body stays alive to the end.
        const bool crosses = std::holds_alternative<GatherOutputs>(op);
        if (crosses) use_value(id, end);
      }
      if (const auto* matmul = std::get_if<Matmul>(&op); matmul && needs_quantised(*matmul))
        quantised_block_[i] =
            new_block(static_cast<int64_t>(kernels::quantised_rows_bytes(
                          rows_max(rows_of(op)), matmul->weights.front().columns)),
                      step - 1, step);
    }
    use_value(graph_.result, end);
    for (const RopeTable& table : graph_.ropes)
      angle_blocks_.push_back(new_block(options_.tokens_max * 2 * sizeof_floats(table), 0, end));
    program_.arena_bytes = place_blocks(blocks_);
  }

  static int64_t sizeof_floats(const RopeTable& table) {
    return static_cast<int64_t>(table.inverse_frequency.size() * sizeof(float));
  }

  void use_value(ValueId id, int32_t step) {
    const auto at = static_cast<size_t>(root(id));
    if (!value_block_[at]) {
      const Value& value = graph_.values[at];
      value_block_[at] = new_block(
          rows_max(value.rows) * value.width * static_cast<int64_t>(sizeof(float)), step, step);
    }
    touch(*value_block_[at], step);
  }

  Place place(ValueId id) const {
    const auto at = static_cast<size_t>(root(id));
    return {blocks_[*value_block_[at]].offset, graph_.values[at].width};
  }
  KvPlace kv_place(int32_t layer) const { return options_.kv[static_cast<size_t>(layer)]; }
  Place angles(int32_t table) const {
    const auto at = static_cast<size_t>(table);
    return {blocks_[angle_blocks_[at]].offset,
            static_cast<int64_t>(2 * graph_.ropes[at].inverse_frequency.size())};
  }

  // The program's step `number`; body and head share one numbering.
  Step& step(int32_t number) {
    const auto at = static_cast<size_t>(number);
    std::vector<Step>& list = step_rows_[at] == Rows::tokens ? program_.body : program_.head;
    if (step_at_.size() <= at) {
      step_at_.resize(at + 1, -1);
    }
    if (step_at_[at] < 0) {
      step_at_[at] = static_cast<int64_t>(list.size());
      list.push_back({step_rows_[at], RowStep{}});
    }
    return list[static_cast<size_t>(step_at_[at])];
  }

  // Row-local operations become one entry of their step's list.
  void emit_row(RowOp op, int32_t number) {
    std::get<RowStep>(step(number).work).ops.push_back(std::move(op));
  }

  void emit(const Op& op, int32_t number) {
    std::visit(
        Overloaded{
            [&](const Embed& o) { emit_embed(o, number); },
            [&](const Matmul& o) { emit_matmul(o, number); },
            [&](const Attention& o) {
              step(number).work = AttentionStep{place(o.q), place(o.out),  kv_place(o.kv.layer),
                                                o.kv.heads, o.kv.kv_heads, o.kv.head_dim,
                                                o.mask,     o.window,      o.scale,
                                                o.softcap,  o.sinks};
            },
            [&](const ExpertMatmul& o) { step(number).work = expert_step(o, o.out, {part(o)}); },
            [&](const GatedExperts& o) {
              ExpertMatmulStep work = expert_step(o.gate, o.out, {part(o.gate), part(o.up)});
              work.act = o.act;
              step(number).work = std::move(work);
            },
            [](const Scores&) {},  // check() has refused these four
            [](const Mask&) {},
            [](const Softmax&) {},
            [](const WeighValues&) {},
            [&](const auto& o) { emit_row(row_op(o), number); },
        },
        op);
  }

  static ExpertPart part(const ExpertMatmul& op) { return {op.experts, op.biases}; }
  ExpertMatmulStep expert_step(const ExpertMatmul& op, ValueId out,
                               std::vector<ExpertPart> parts) const {
    return {place(op.in), place(op.route), place(out), op.input, op.used, std::move(parts), {}};
  }

  // The first embedding begins the program; angles go before it, once.
  void emit_embed(const Embed& op, int32_t number) {
    const bool first = program_.body.empty();
    for (size_t t = 0; first && t < graph_.ropes.size(); ++t)
      emit_row(RopeAnglesRow{static_cast<int32_t>(t), angles(static_cast<int32_t>(t))}, number);
    emit_row(EmbedRow{op.table, op.scale, place(op.out)}, number);
  }

  RowOp row_op(const RmsNorm& o) const {
    return RmsNormRow{place(o.in), place(o.out), o.weight, o.group_width, o.epsilon};
  }
  RowOp row_op(const LayerNorm& o) const {
    return LayerNormRow{place(o.in), place(o.out), o.weight, o.bias, o.epsilon};
  }
  RowOp row_op(const Add& o) const { return AddRow{place(o.a), place(o.b), place(o.out)}; }
  RowOp row_op(const Mul& o) const { return MulRow{place(o.a), place(o.b), place(o.out)}; }
  RowOp row_op(const AddBias& o) const { return AddBiasRow{place(o.in), o.bias}; }
  RowOp row_op(const AddPosition& o) const { return AddPositionRow{place(o.in), o.table}; }
  RowOp row_op(const GatedAct& o) const {
    return GatedActRow{place(o.gate), place(o.up), place(o.out), o.act};
  }
  RowOp row_op(const Activate& o) const { return ActivateRow{place(o.in), o.act}; }
  RowOp row_op(const Scale& o) const { return ScaleRow{place(o.in), o.factor}; }
  RowOp row_op(const Softcap& o) const { return SoftcapRow{place(o.in), o.cap}; }
  RowOp row_op(const Columns& o) const { return ColumnsRow{place(o.in), place(o.out), o.begin}; }
  RowOp row_op(const Rope& o) const {
    const RopeTable& table = graph_.ropes[static_cast<size_t>(o.table)];
    return RopeRow{place(o.in), angles(o.table), o.head_dim,
                   static_cast<int64_t>(2 * table.inverse_frequency.size()), table.pairs};
  }
  RowOp row_op(const StoreKv& o) const {
    return StoreKvRow{place(o.k), place(o.v), kv_place(o.layer), o.kv_heads, o.head_dim};
  }
  RowOp row_op(const Route& o) const {
    return RouteRow{place(o.in), place(o.out), o.used, o.scoring, o.weights, o.scales};
  }
  RowOp row_op(const CombineExperts& o) const {
    return CombineExpertsRow{place(o.in), place(o.route), place(o.out), o.used};
  }
  RowOp row_op(const GatherOutputs& o) const { return GatherRow{place(o.in), place(o.out)}; }

  void emit_matmul(const Matmul& op, int32_t number) {
    const Rows rows = step_rows_[static_cast<size_t>(number)];
    MatmulStep work{place(op.in), -1, rows_max(rows), {}};
    if (needs_quantised(op)) {
      const size_t index = static_cast<size_t>(&op_holder(number) - graph_.ops.data());
      work.quantised_offset = blocks_[*quantised_block_[index]].offset;
      emit_row(QuantiseRow{work.in, work.quantised_offset, work.rows_max}, number - 1);
    }
    for (size_t i = 0; i < op.weights.size(); ++i)
      work.parts.push_back({op.weights[i], place(op.outs[i])});
    step(number).work = std::move(work);
  }

  // A wide step holds exactly one operation: the one with this number.
  const Op& op_holder(int32_t number) const {
    const auto at = std::find(step_of_op_.begin(), step_of_op_.end(), number);
    return graph_.ops[static_cast<size_t>(at - step_of_op_.begin())];
  }

  void finish() {
    program_.ropes = graph_.ropes;
    program_.result = place(graph_.result);
    program_.tokens_max = options_.tokens_max;
    program_.outputs_max = options_.outputs_max;
    program_.weight_bytes_per_step = graph_.weight_bytes_per_step();
    program_.kv_type = options_.kv_type;
  }

  const Graph& graph_;
  const LowerOptions& options_;
  Program program_;
  std::vector<Rows> step_rows_;
  std::vector<bool> step_wide_;
  std::vector<int32_t> step_of_op_;
  std::vector<ValueId> alias_;
  std::vector<ArenaBlock> blocks_;
  std::vector<std::optional<size_t>> value_block_;
  std::vector<std::optional<size_t>> quantised_block_;  // by op index
  std::vector<size_t> angle_blocks_;
  std::vector<int64_t> step_at_;  // step number -> index in body or head
};

std::string line(const Step& step) {
  const char* rows = step.rows == Rows::tokens ? "tokens " : "outputs ";
  return std::visit(Overloaded{
                        [&](const RowStep& work) {
                          static constexpr const char* kNames[] = {
                              "embed",    "rope_angles", "rms_norm",     "layer_norm", "add",
                              "mul",      "add_bias",    "add_position", "gated_act",  "activate",
                              "scale",    "softcap",     "columns",      "rope",       "store_kv",
                              "quantise", "route",       "combine",      "gather"};
                          static_assert(std::size(kNames) == std::variant_size_v<RowOp>);
                          std::string out = text(rows, "row");
                          for (const RowOp& op : work.ops) out += text(" ", kNames[op.index()]);
                          return out;
                        },
                        [&](const MatmulStep& work) {
                          std::string out = text(rows, "matmul");
                          for (const MatmulPart& part : work.parts)
                            out += text(" ", part.weight.name);
                          return out;
                        },
                        [&](const AttentionStep& work) {
                          return text(rows, "attention group ", work.kv.group, " window ",
                                      work.window);
                        },
                        [&](const ExpertMatmulStep& work) {
                          std::string out = text(rows, "experts");
                          for (const ExpertPart& part : work.parts)
                            out += text(" ", part.weights.front().name);
                          return out;
                        },
                    },
                    step.work);
}

}  // namespace

Result<Program> lower(const Graph& graph, const LowerOptions& options) {
  return Lowering(graph, options).run();
}

std::string to_string(const Program& program) {
  std::string out = text("arena ", program.arena_bytes, " bytes, tokens <= ", program.tokens_max,
                         ", outputs <= ", program.outputs_max, "\n");
  for (const Step& step : program.body) out += line(step) + "\n";
  for (const Step& step : program.head) out += line(step) + "\n";
  return out;
}

}  // namespace optima::graph
