// Row-local operations: each thread takes a contiguous range of rows through all operations of the
// step, a tile of rows at a time so that they stay in its first-level cache.
#include <algorithm>
#include <cstring>

#include "backend/cpu/step_context.h"

namespace optima::backend::cpu {
namespace {

constexpr int64_t kTileRows = 16;

struct Tile {
  int64_t begin, end;
};

class RowRunner {
 public:
  RowRunner(const Pass& pass, Tile tile) : pass_(pass), tile_(tile) {}

  void operator()(const graph::EmbedRow& op) const {
    const auto* info = kernels::find_weight_type(static_cast<int32_t>(op.table.type));
    const size_t bytes = kernels::row_bytes(*info, op.table.columns);
    const kernels::DequantRowFn dequant = kernels::dequant_row(op.table.type);
    for (int64_t row = tile_.begin; row < tile_.end; ++row) {
      const auto id = static_cast<size_t>(pass_.batch->token_ids[static_cast<size_t>(row)]);
      float* out = row_at(op.out, row);
      dequant(static_cast<const std::byte*>(op.table.data) + id * bytes, out, op.out.width);
      if (op.scale != 1.0f) pass_.kernels->scale(out, op.scale, out, op.out.width);
    }
  }

  void operator()(const graph::RopeAnglesRow& op) const {
    const graph::RopeTable& table = pass_.program->ropes[static_cast<size_t>(op.table)];
    kernels::rope_table(pass_.batch->positions.data() + tile_.begin, tile_.end - tile_.begin,
                        table.inverse_frequency.data(), op.out.width, table.magnitude,
                        row_at(op.out, tile_.begin));
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

  void operator()(const graph::AddRow& op) const {
    pass_.kernels->add(row_at(op.a, tile_.begin), row_at(op.b, tile_.begin),
                       row_at(op.out, tile_.begin), count(op.out));
  }

  void operator()(const graph::GatedActRow& op) const {
    pass_.kernels->gated_act(row_at(op.gate, tile_.begin), row_at(op.up, tile_.begin),
                             row_at(op.out, tile_.begin), count(op.out), {op.act, 0, 0});
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
  int64_t count(const graph::Place& place) const { return (tile_.end - tile_.begin) * place.width; }

  const Pass& pass_;
  Tile tile_;
};

}  // namespace

void run_row_step(const graph::RowStep& step, const Pass& pass, const Worker& worker,
                  int64_t rows) {
  const int64_t begin = rows * worker.thread / worker.threads;
  const int64_t end = rows * (worker.thread + 1) / worker.threads;
  for (int64_t row = begin; row < end; row += kTileRows) {
    const RowRunner runner(pass, {row, std::min(row + kTileRows, end)});
    for (const graph::RowOp& op : step.ops) std::visit(runner, op);
  }
}

}  // namespace optima::backend::cpu
