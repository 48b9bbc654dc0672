// Products with the experts that each token was routed to: tokens are grouped by expert, and each
// group is a matrix product. Unpacking an expert's weights costs about as much as four activation
// rows, and kernels for many rows want many, so a tile takes up to kExpertRows rows. All threads
// walk the tiles in the same order and share each by its weight rows: a thread quantises a tile's
// activations once, into memory of its own, and scatters products to their slots as they come; of
// gated experts it multiplies the same columns of gate and up, and scatters what is activated.
#include <algorithm>
#include <cstring>

#include "backend/cpu/step_context.h"

namespace optima::backend::cpu {
namespace {

constexpr int64_t kExpertRows = 192;
// Products of a whole tile, for each part, that wait to be scattered, so that they stay in the
// second-level cache; a tile of fewer rows has more columns. Rows of a power of two would share
// lines of a cache.
constexpr int64_t kOutputColumns = 256;
constexpr int64_t kOutputPadding = 16;
constexpr int64_t kExpertPieces = 8;  // of a step, for each thread

// A row of the batch and the slot in which it chose an expert.
struct Choice {
  int32_t row, slot;
};

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// Whether the kernel reads activations as they are.
bool reads_floats(const KernelTable& kernels, kernels::WeightType type) {
  return !kernels::uses_quantised_activations(type) ||
         kernels.matmul.run == kernels::kMatmulReference.run;
}

// Activations of a tile, in the form that products with the weight read.
size_t input_bytes(const graph::Weight& weight, const KernelTable& kernels, int64_t tile_rows) {
  if (reads_floats(kernels, weight.type))
    return static_cast<size_t>(tile_rows * weight.columns) * sizeof(float);
  return kernels::quantised_rows_bytes(tile_rows, weight.columns);
}

// How a thread's scratch is divided; a tile's input is the last part.
struct Layout {
  int64_t tile_rows;
  size_t choices, output, output_bytes, kernel, input;
};
Layout layout(const graph::ExpertMatmulStep& step, const graph::Program& program,
              const KernelTable& kernels) {
  const int64_t rows_max = std::max(program.tokens_max, program.outputs_max);
  Layout at{};
  at.tile_rows = std::min(kExpertRows, rows_max);
  at.choices = round_line(step.parts.front().weights.size() * sizeof(int32_t));
  at.output = at.choices + round_line(static_cast<size_t>(rows_max * step.used) * sizeof(Choice));
  at.output_bytes = round_line(static_cast<size_t>(at.tile_rows) *
                               (kOutputColumns + kOutputPadding) * sizeof(float));
  at.kernel = at.output + step.parts.size() * at.output_bytes;
  at.input = at.kernel;
  if (kernels.matmul.scratch_bytes != nullptr)
    at.input += round_line(
        kernels.matmul.scratch_bytes(at.tile_rows, step.parts.front().weights.front().columns));
  return at;
}

class ExpertRunner {
 public:
  ExpertRunner(const graph::ExpertMatmulStep& step, const Pass& pass, const Worker& worker,
               int64_t rows)
      : step_(step),
        pass_(pass),
        worker_(worker),
        rows_(rows),
        at_(layout(step, *pass.program, *pass.kernels)),
        ends_(reinterpret_cast<int32_t*>(worker.scratch)),
        choices_(reinterpret_cast<Choice*>(worker.scratch + at_.choices)) {}

  void run() const {
    group();
    const int64_t piece = piece_rows();
    const int64_t pieces = divide_up(part_rows(), piece);
    int64_t first = 0;
    int64_t next = take();
    for (size_t expert = 0; expert < experts(); ++expert) {
      const Choice* chosen = choices_ + begin_of(expert);
      for (int64_t tiles = tiles_of(expert); tiles > 0; --tiles, first += pieces) {
        const int64_t left = choices_ + ends_[expert] - chosen;
        const Tile tile = {expert, chosen, divide_up(left, tiles)};
        chosen += tile.rows;
        if (next >= first + pieces) continue;  // all of it was taken by others
        const kernels::MatmulArgs args = prepare(tile);
        for (; next < first + pieces; next = take()) {
          const int64_t begin = (next - first) * piece;
          run_piece(tile, args, begin, std::min(begin + piece, args.n));
        }
      }
    }
  }

 private:
  // Rows that chose an expert: all of them, or an equal share where there are too many.
  struct Tile {
    size_t expert;
    const Choice* choices;
    int64_t rows;
  };

  int64_t take() const { return worker_.counter->fetch_add(1, std::memory_order_relaxed); }
  size_t experts() const { return step_.parts.front().weights.size(); }
  int64_t part_rows() const { return step_.parts.front().weights.front().rows; }
  const int32_t* ids(int64_t row) const {
    return reinterpret_cast<const int32_t*>(floats_at(pass_, step_.route) +
                                            row * step_.route.width);
  }
  int32_t begin_of(size_t expert) const { return expert == 0 ? 0 : ends_[expert - 1]; }
  int64_t tiles_of(size_t expert) const {
    return divide_up(ends_[expert] - begin_of(expert), at_.tile_rows);
  }

  // Sorts the choices by expert and, of one expert, by row. Each thread does so for itself: it
  // costs less than to wait for another.
  void group() const {
    std::fill_n(ends_, experts(), 0);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t slot = 0; slot < step_.used; ++slot) ++ends_[ids(row)[slot]];
    int32_t before = 0;
    for (size_t expert = 0; expert < experts(); ++expert) {
      const int32_t count = ends_[expert];
      ends_[expert] = before;
      before += count;
    }
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t slot = 0; slot < step_.used; ++slot)
        choices_[ends_[ids(row)[slot]]++] = {static_cast<int32_t>(row), static_cast<int32_t>(slot)};
  }

  // Weight rows of a piece: the more tiles there are, the fewer pieces each has.
  int64_t piece_rows() const {
    const int64_t n = part_rows();
    if (worker_.threads == 1) return n;
    int64_t tiles = 0;
    for (size_t expert = 0; expert < experts(); ++expert) tiles += tiles_of(expert);
    const int64_t pieces = divide_up(worker_.threads * kExpertPieces, std::max<int64_t>(tiles, 1));
    const int64_t granule = pass_.kernels->matmul.granule;
    return divide_up(divide_up(n, pieces), granule) * granule;
  }

  // What the products of all parts with the tile read alike.
  kernels::MatmulArgs prepare(const Tile& tile) const {
    const graph::Weight& weight = step_.parts.front().weights[tile.expert];
    std::byte* block = worker_.scratch + at_.input;
    kernels::MatmulArgs args{};
    args.n = weight.rows;
    args.k = weight.columns;
    args.m = tile.rows;
    if (reads_floats(*pass_.kernels, weight.type)) {
      gather(tile, args.k, reinterpret_cast<float*>(block));
      args.x = reinterpret_cast<const float*>(block);
    } else if (pass_.kernels->row_sums == kernels::RowSums::fastest &&
               reads_arranged(*pass_.kernels, tile.rows)) {
      for (int64_t i = 0; i < tile.rows; ++i)
        pass_.kernels->matmul.arrange_rows(rows_with(tile, i, args.k), args.k, i, i + 1, block);
      args.arranged = block;
    } else {
      args.xq = kernels::quantised_rows_at(block, tile.rows, args.k);
      for (int64_t i = 0; i < tile.rows; ++i)
        pass_.kernels->quantise_rows(rows_with(tile, i, args.k), args.k, i, i + 1, args.xq);
    }
    args.scratch = worker_.scratch + at_.kernel;
    args.row_sums = pass_.kernels->row_sums;
    return args;
  }

  // What the tile's row `index` reads.
  const float* input(const Tile& tile, int64_t index, int64_t columns) const {
    const Choice& choice = tile.choices[index];
    const int64_t offset = step_.input == graph::ExpertInput::per_slot ? choice.slot * columns : 0;
    return floats_at(pass_, step_.in) + choice.row * step_.in.width + offset;
  }
  // Rows of `columns` of which row `index` is what the tile's row `index` reads: kernels number
  // what they read as what they write. They begin within the step's input, since an expert is
  // chosen once by a row: row `index` of a tile is row `index` of the batch or a later one.
  const float* rows_with(const Tile& tile, int64_t index, int64_t columns) const {
    return input(tile, index, columns) - index * columns;
  }

  void gather(const Tile& tile, int64_t columns, float* to) const {
    for (int64_t i = 0; i < tile.rows; ++i)
      std::memcpy(to + i * columns, input(tile, i, columns),
                  static_cast<size_t>(columns) * sizeof(float));
  }

  void run_piece(const Tile& tile, kernels::MatmulArgs args, int64_t n_begin, int64_t n_end) const {
    const int64_t columns = at_.tile_rows / args.m * kOutputColumns;
    args.out_stride = columns + kOutputPadding;
    for (int64_t n = n_begin; n < n_end; n += columns) {
      args.n = std::min(columns, n_end - n);
      for (size_t part = 0; part < step_.parts.size(); ++part) multiply(tile, args, part, n);
      if (step_.act) {
        activate(tile, args, n);
      } else {
        scatter(tile, args, n);
      }
    }
  }

  // With the part's weight rows from n on.
  void multiply(const Tile& tile, kernels::MatmulArgs args, size_t part, int64_t n) const {
    const graph::Weight& weight = step_.parts[part].weights[tile.expert];
    const auto* info = kernels::find_weight_type(static_cast<int32_t>(weight.type));
    const auto row_bytes = static_cast<int64_t>(kernels::row_bytes(*info, args.k));
    args.weights = static_cast<const std::byte*>(weight.data) + n * row_bytes;
    args.type = weight.type;
    args.out = products(part);
    pass_.kernels->matmul.run(args, 0, args.n);
  }

  float* products(size_t part) const {
    return reinterpret_cast<float*>(worker_.scratch + at_.output + part * at_.output_bytes);
  }
  const float* bias(const Tile& tile, size_t part, int64_t n) const {
    const std::vector<const float*>& biases = step_.parts[part].biases;
    return biases.empty() ? nullptr : biases[tile.expert] + n;
  }
  float* slot(const Choice& choice) const {
    return floats_at(pass_, step_.out) + choice.row * step_.out.width + choice.slot * part_rows();
  }

  // Products with weight rows from n on, to their slots.
  void scatter(const Tile& tile, const kernels::MatmulArgs& args, int64_t n) const {
    const float* added = bias(tile, 0, n);
    for (int64_t i = 0; i < tile.rows; ++i) {
      float* out = slot(tile.choices[i]) + n;
      const float* from = products(0) + i * args.out_stride;
      for (int64_t j = 0; j < args.n; ++j) out[j] = added != nullptr ? from[j] + added[j] : from[j];
    }
  }

  // What the activation makes of a gate's and an up's, to their slots.
  void activate(const Tile& tile, const kernels::MatmulArgs& args, int64_t n) const {
    for (size_t part = 0; part < step_.parts.size(); ++part) add_bias(tile, args, part, n);
    for (int64_t i = 0; i < tile.rows; ++i)
      pass_.kernels->gated_act(products(0) + i * args.out_stride, products(1) + i * args.out_stride,
                               slot(tile.choices[i]) + n, args.n, *step_.act);
  }

  void add_bias(const Tile& tile, const kernels::MatmulArgs& args, size_t part, int64_t n) const {
    const float* added = bias(tile, part, n);
    if (added == nullptr) return;
    for (int64_t i = 0; i < tile.rows; ++i) {
      float* row = products(part) + i * args.out_stride;
      pass_.kernels->add_bias(row, added, row, 1, args.n);
    }
  }

  const graph::ExpertMatmulStep& step_;
  const Pass& pass_;
  const Worker& worker_;
  int64_t rows_;
  Layout at_;
  int32_t* ends_;    // of each expert's choices
  Choice* choices_;  // of all rows
};

}  // namespace

size_t expert_scratch_bytes(const graph::ExpertMatmulStep& step, const graph::Program& program,
                            const KernelTable& kernels) {
  const Layout at = layout(step, program, kernels);
  size_t input = 0;
  for (const graph::ExpertPart& part : step.parts)
    for (const graph::Weight& weight : part.weights)
      input = std::max(input, input_bytes(weight, kernels, at.tile_rows));
  return at.input + input;
}

void run_expert_matmul_step(const graph::ExpertMatmulStep& step, const Pass& pass,
                            const Worker& worker, int64_t rows) {
  ExpertRunner(step, pass, worker, rows).run();
}

}  // namespace optima::backend::cpu
