// Row-local operations: each thread takes a contiguous range of rows through all operations of the
// step, a tile of rows at a time so that they stay in its first-level cache.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backend/cpu/step_context.h"

namespace optima::backend::cpu {
namespace {

constexpr int64_t kPositionFloats = 256;  // a multiple of every weight type's block
constexpr size_t kRotaryPairsMax = 256;   // twice what the largest head has

struct Tile {
  int64_t begin, end;
};

class RowRunner {
 public:
  // `rows` are those of the whole step.
  RowRunner(const Pass& pass, Tile tile, int64_t rows) : pass_(pass), tile_(tile), rows_(rows) {}

  void operator()(const graph::EmbedRow& op) const {
    for (int64_t row = tile_.begin; row < tile_.end; ++row) {
      float* out = row_at(op.out, row);
      read_row(op.table, pass_.batch->token_ids[static_cast<size_t>(row)], out);
      if (op.scale != 1.0f) pass_.kernels->scale(out, op.scale, out, op.out.width);
    }
  }

  void operator()(const graph::AddPositionRow& op) const {
    std::array<float, kPositionFloats> piece;
    for (int64_t row = tile_.begin; row < tile_.end; ++row) {
      const int32_t position = pass_.batch->positions[static_cast<size_t>(row)];
      add_row(op.table, position, piece, row_at(op.x, row));
    }
  }

  void operator()(const graph::RopeAnglesRow& op) const {
    const graph::RopeTable& table = pass_.program->ropes[static_cast<size_t>(op.table)];
    std::array<double, kRotaryPairsMax> stretched;
    for (const graph::SequenceRun& run : pass_.batch->sequences) {
      const int64_t begin = std::max(tile_.begin, run.row_begin);
      const int64_t end = std::min(tile_.end, run.row_begin + run.tokens);
      if (begin >= end) continue;
      kernels::rope_table(pass_.batch->positions.data() + begin, end - begin,
                          frequencies(table, run.context, stretched), op.out.width, table.magnitude,
                          row_at(op.out, begin));
    }
  }

  void operator()(const graph::RmsNormRow& op) const {
    const int64_t groups = op.in.width / op.group_width;
    kernels::RmsNormArgs args{};
    args.x = floats_at(pass_, op.in);
    args.x_stride = op.group_width;
    args.weight = op.weight;
    args.out = floats_at(pass_, op.out);
    args.out_stride = op.group_width;
    args.width = op.group_width;
    args.epsilon = op.epsilon;
    pass_.kernels->rms_norm(args, tile_.begin * groups, tile_.end * groups);
  }

  void operator()(const graph::LayerNormRow& op) const {
    kernels::LayerNormArgs args{};
    args.x = floats_at(pass_, op.in);
    args.x_stride = op.in.width;
    args.weight = op.weight;
    args.bias = op.bias;
    args.out = floats_at(pass_, op.out);
    args.out_stride = op.out.width;
    args.width = op.in.width;
    args.epsilon = op.epsilon;
    pass_.kernels->layer_norm(args, tile_.begin, tile_.end);
  }

  void operator()(const graph::AddRow& op) const {
    pass_.kernels->add(row_at(op.a, tile_.begin), row_at(op.b, tile_.begin),
                       row_at(op.out, tile_.begin), count(op.out));
  }

  void operator()(const graph::GatedActRow& op) const {
    pass_.kernels->gated_act(row_at(op.gate, tile_.begin), row_at(op.up, tile_.begin),
                             row_at(op.out, tile_.begin), count(op.out), op.act);
  }

  void operator()(const graph::MulRow& op) const {
    pass_.kernels->mul(row_at(op.a, tile_.begin), row_at(op.b, tile_.begin),
                       row_at(op.out, tile_.begin), count(op.out));
  }

  void operator()(const graph::AddBiasRow& op) const {
    float* x = row_at(op.x, tile_.begin);
    pass_.kernels->add_bias(x, op.bias, x, tile_.end - tile_.begin, op.x.width);
  }

  void operator()(const graph::ActivateRow& op) const {
    float* x = row_at(op.x, tile_.begin);
    pass_.kernels->act(x, x, count(op.x), op.act);
  }

  void operator()(const graph::ScaleRow& op) const {
    float* x = row_at(op.x, tile_.begin);
    pass_.kernels->scale(x, op.factor, x, count(op.x));
  }

  void operator()(const graph::SoftcapRow& op) const {
    float* x = row_at(op.x, tile_.begin);
    pass_.kernels->softcap(x, op.cap, x, count(op.x));
  }

  void operator()(const graph::ColumnsRow& op) const {
    for (int64_t row = tile_.begin; row < tile_.end; ++row)
      std::memcpy(row_at(op.out, row), row_at(op.in, row) + op.begin,
                  static_cast<size_t>(op.out.width) * sizeof(float));
  }

  void operator()(const graph::RouteRow& op) const {
    kernels::MoeRouteArgs args{};
    args.logits_stride = op.in.width;
    args.experts = op.in.width;
    args.used = op.used;
    args.scoring = op.scoring;
    args.weights = op.weights;
    args.scale = 1.0f;
    for (int64_t row = tile_.begin; row < tile_.end; ++row) {
      args.logits = row_at(op.in, row);
      args.out_ids = reinterpret_cast<int32_t*>(row_at(op.out, row));
      args.out_weights = row_at(op.out, row) + op.used;
      pass_.kernels->moe_route(args, 0, 1);
      for (int64_t j = 0; op.scales != nullptr && j < op.used; ++j)
        args.out_weights[j] *= op.scales[args.out_ids[j]];
    }
  }

  void operator()(const graph::CombineExpertsRow& op) const {
    const int64_t width = op.out.width;
    for (int64_t row = tile_.begin; row < tile_.end; ++row) {
      const float* weights = row_at(op.route, row) + op.used;
      const float* in = row_at(op.in, row);
      float* out = row_at(op.out, row);
      pass_.kernels->scale(in, weights[0], out, width);
      for (int64_t slot = 1; slot < op.used; ++slot)
        for (int64_t i = 0; i < width; ++i) out[i] += weights[slot] * in[slot * width + i];
    }
  }

  void operator()(const graph::RopeRow& op) const {
    kernels::RopeArgs args{};
    args.x = floats_at(pass_, op.x);
    args.x_stride = op.x.width;
    args.heads = op.x.width / op.head_dim;
    args.head_dim = op.head_dim;
    args.rotary_dim = op.rotary_dim;
    args.cos_sin = floats_at(pass_, op.angles);
    args.pairs = op.pairs;
    pass_.kernels->rope(args, tile_.begin, tile_.end);
  }

  void operator()(const graph::StoreKvRow& op) const {
    for (const graph::SequenceRun& run : pass_.batch->sequences) {
      const int64_t begin = std::max(tile_.begin, run.row_begin);
      const int64_t end = std::min(tile_.end, run.row_begin + run.tokens);
      if (begin >= end) continue;
      kernels::KvStoreArgs args{};
      args.k = row_at(op.k, begin);
      args.k_stride = op.k.width;
      args.v = row_at(op.v, begin);
      args.v_stride = op.v.width;
      args.pages = run.pages[static_cast<size_t>(op.kv.group)];
      args.slot_offset = op.kv.slot_offset;
      args.slot_stride = op.kv.slot_stride;
      args.kv_type = pass_.program->kv_type;
      args.tokens = end - begin;
      args.first_position = run.first_position + (begin - run.row_begin);
      args.kv_heads = op.kv_heads;
      args.head_dim = op.head_dim;
      pass_.kernels->kv_store(args, 0, op.kv_heads);
    }
  }

  void operator()(const graph::QuantiseRow& op) const {
    if (reads_arranged(*pass_.kernels, rows_))
      return pass_.kernels->matmul.arrange_rows(floats_at(pass_, op.in), op.in.width, tile_.begin,
                                                tile_.end, pass_.arena + op.out_offset);
    const kernels::QuantisedRows rows =
        kernels::quantised_rows_at(pass_.arena + op.out_offset, op.rows_max, op.in.width);
    pass_.kernels->quantise_rows(floats_at(pass_, op.in), op.in.width, tile_.begin, tile_.end,
                                 rows);
  }

  void operator()(const graph::GatherRow& op) const {
    for (int64_t row = tile_.begin; row < tile_.end; ++row) {
      const int32_t from = pass_.batch->output_rows[static_cast<size_t>(pass_.output_begin + row)];
      std::memcpy(row_at(op.out, row), row_at(op.in, from),
                  static_cast<size_t>(op.out.width) * sizeof(float));
    }
  }

 private:
  float* row_at(const graph::Place& place, int64_t row) const {
    return floats_at(pass_, place) + row * place.width;
  }
  // A row of a weight matrix as fp32.
  static void read_row(const graph::Weight& table, int64_t index, float* out) {
    const auto* info = kernels::find_weight_type(static_cast<int32_t>(table.type));
    const auto* rows = static_cast<const std::byte*>(table.data);
    kernels::dequant_row(table.type)(
        rows + static_cast<size_t>(index) * kernels::row_bytes(*info, table.columns), out,
        table.columns);
  }
  // x += a row, piece by piece, so that no buffer grows with the model.
  void add_row(const graph::Weight& table, int64_t index, std::array<float, kPositionFloats>& piece,
               float* x) const {
    const auto* info = kernels::find_weight_type(static_cast<int32_t>(table.type));
    const auto* row = static_cast<const std::byte*>(table.data) +
                      static_cast<size_t>(index) * kernels::row_bytes(*info, table.columns);
    for (int64_t begin = 0; begin < table.columns; begin += kPositionFloats) {
      const int64_t floats = std::min<int64_t>(kPositionFloats, table.columns - begin);
      kernels::dequant_row(table.type)(row + kernels::row_bytes(*info, begin), piece.data(),
                                       floats);
      pass_.kernels->add(x + begin, piece.data(), x + begin, floats);
    }
  }
  // Those of the table for a sequence of this context; see graph::RopeTable.
  static const double* frequencies(const graph::RopeTable& table, int64_t context,
                                   std::array<double, kRotaryPairsMax>& stretched) {
    if (table.original_context == 0 || context <= table.original_context)
      return table.inverse_frequency.data();
    if (table.stretch == 0) return table.long_inverse_frequency.data();
    const size_t pairs = table.inverse_frequency.size();
    const double dims = 2.0 * static_cast<double>(pairs);
    const double ratio = static_cast<double>(context) / static_cast<double>(table.original_context);
    const double base =
        table.base * std::pow(table.stretch * ratio - (table.stretch - 1), dims / (dims - 2));
    for (size_t i = 0; i < pairs; ++i)
      stretched[i] = std::pow(base, -2.0 * static_cast<double>(i) / dims);
    return stretched.data();
  }
  int64_t count(const graph::Place& place) const { return (tile_.end - tile_.begin) * place.width; }

  const Pass& pass_;
  Tile tile_;
  int64_t rows_;
};

}  // namespace

void run_row_step(const graph::RowStep& step, const Pass& pass, const Worker& worker,
                  int64_t rows) {
  const int64_t begin = rows * worker.thread / worker.threads;
  const int64_t end = rows * (worker.thread + 1) / worker.threads;
  for (int64_t row = begin; row < end; row += kTileRows) {
    const RowRunner runner(pass, {row, std::min(row + kTileRows, end)}, rows);
    for (const graph::RowOp& op : step.ops) std::visit(runner, op);
  }
}

}  // namespace optima::backend::cpu
