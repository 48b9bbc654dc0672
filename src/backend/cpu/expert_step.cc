// Products with the experts that each token was routed to. All threads walk the experts in order;
// for each, the rows that chose it are gathered, a tile at a time, into a thread's own memory,
// multiplied by the piece of the expert's rows that the thread took, and scattered to their slots.
#include <algorithm>
#include <cstring>

#include "backend/cpu/step_context.h"

namespace optima::backend::cpu {
namespace {

constexpr int64_t kPiecesOfExpert = 4;  // a thread, of one expert

// How a thread's scratch is divided.
struct Layout {
  size_t input, quantised, output, kernel, end;
};
Layout layout(const graph::ExpertMatmulStep& step, const KernelTable& kernels) {
  const graph::Weight& shape = step.experts.front();
  Layout at{};
  at.quantised = round_line(static_cast<size_t>(kTileRows * shape.columns) * sizeof(float));
  at.output = at.quantised + round_line(kernels::quantised_rows_bytes(kTileRows, shape.columns));
  at.kernel = at.output + round_line(static_cast<size_t>(kTileRows * shape.rows) * sizeof(float));
  at.end = at.kernel;
  if (kernels.matmul.scratch_bytes != nullptr)
    at.end += kernels.matmul.scratch_bytes(kTileRows, shape.columns);
  return at;
}

// A row of the batch and the slot in which it chose an expert.
struct Choice {
  int64_t row, slot;
};

class ExpertRunner {
 public:
  ExpertRunner(const graph::ExpertMatmulStep& step, const Pass& pass, const Worker& worker,
               int64_t rows)
      : step_(step), pass_(pass), worker_(worker), rows_(rows), at_(layout(step, *pass.kernels)) {}

  void run() {
    const int64_t granule = pass_.kernels->matmul.granule;
    const int64_t n = step_.experts.front().rows;
    const int64_t wanted = worker_.threads == 1 ? n : n / (worker_.threads * kPiecesOfExpert);
    const int64_t piece = (std::max<int64_t>(wanted, 1) + granule - 1) / granule * granule;
    const int64_t pieces = (n + piece - 1) / piece;
    int64_t first = 0;
    int64_t next = take();
    for (size_t expert = 0; expert < step_.experts.size(); ++expert) {
      if (!is_chosen(static_cast<int32_t>(expert))) continue;
      for (; next < first + pieces; next = take()) {
        const int64_t begin = (next - first) * piece;
        run_piece(expert, begin, std::min(begin + piece, n));
      }
      first += pieces;
    }
  }

 private:
  int64_t take() const { return worker_.counter->fetch_add(1, std::memory_order_relaxed); }
  const int32_t* ids(int64_t row) const {
    return reinterpret_cast<const int32_t*>(floats_at(pass_, step_.route) +
                                            row * step_.route.width);
  }
  bool is_chosen(int32_t expert) const {
    for (int64_t row = 0; row < rows_; ++row)
      if (std::find(ids(row), ids(row) + step_.used, expert) != ids(row) + step_.used) return true;
    return false;
  }

  // A tile's rows are looked for again by each piece: reading ids costs little beside a product.
  void run_piece(size_t expert, int64_t n_begin, int64_t n_end) {
    Choice tile[kTileRows];
    int64_t filled = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t slot = 0; slot < step_.used; ++slot) {
        if (ids(row)[slot] != static_cast<int32_t>(expert)) continue;
        tile[filled++] = {row, slot};
        if (filled == kTileRows) {
          run_tile(expert, tile, filled, n_begin, n_end);
          filled = 0;
        }
      }
    }
    if (filled > 0) run_tile(expert, tile, filled, n_begin, n_end);
  }

  void run_tile(size_t expert, const Choice* tile, int64_t count, int64_t n_begin, int64_t n_end) {
    const graph::Weight& weight = step_.experts[expert];
    auto* input = reinterpret_cast<float*>(worker_.scratch + at_.input);
    gather(tile, count, weight.columns, input);
    kernels::MatmulArgs args{};
    args.weights = weight.data;
    args.type = weight.type;
    args.n = weight.rows;
    args.k = weight.columns;
    args.m = count;
    args.x = input;
    if (kernels::uses_quantised_activations(weight.type)) {
      args.xq =
          kernels::quantised_rows_at(worker_.scratch + at_.quantised, kTileRows, weight.columns);
      pass_.kernels->quantise_rows(input, weight.columns, 0, count, args.xq);
    }
    args.out = reinterpret_cast<float*>(worker_.scratch + at_.output);
    args.out_stride = weight.rows;
    args.scratch = worker_.scratch + at_.kernel;
    args.row_sums = pass_.kernels->row_sums;
    pass_.kernels->matmul.run(args, n_begin, n_end);
    scatter(args, tile, expert, n_begin, n_end);
  }

  void gather(const Choice* tile, int64_t count, int64_t columns, float* input) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t offset =
          step_.input == graph::ExpertInput::per_slot ? tile[i].slot * columns : 0;
      std::memcpy(input + i * columns,
                  floats_at(pass_, step_.in) + tile[i].row * step_.in.width + offset,
                  static_cast<size_t>(columns) * sizeof(float));
    }
  }

  void scatter(const kernels::MatmulArgs& args, const Choice* tile, size_t expert, int64_t n_begin,
               int64_t n_end) const {
    const float* bias = step_.biases.empty() ? nullptr : step_.biases[expert];
    for (int64_t i = 0; i < args.m; ++i) {
      float* out =
          floats_at(pass_, step_.out) + tile[i].row * step_.out.width + tile[i].slot * args.n;
      const float* from = args.out + i * args.out_stride;
      for (int64_t n = n_begin; n < n_end; ++n)
        out[n] = bias != nullptr ? from[n] + bias[n] : from[n];
    }
  }

  const graph::ExpertMatmulStep& step_;
  const Pass& pass_;
  const Worker& worker_;
  int64_t rows_;
  Layout at_;
};

}  // namespace

size_t expert_scratch_bytes(const graph::ExpertMatmulStep& step, const KernelTable& kernels) {
  return layout(step, kernels).end;
}

void run_expert_matmul_step(const graph::ExpertMatmulStep& step, const Pass& pass,
                            const Worker& worker, int64_t rows) {
  ExpertRunner(step, pass, worker, rows).run();
}

}  // namespace optima::backend::cpu
