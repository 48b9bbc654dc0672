// Matrix products and attention: work is cut into pieces that threads take from a shared counter,
// so that a thread held up by a busy neighbour takes fewer.
#include <algorithm>

#include "backend/cpu/pieces.h"
#include "backend/cpu/step_context.h"

namespace optima::backend::cpu {
namespace {

int64_t take(const Worker& worker) {
  return worker.counter->fetch_add(1, std::memory_order_relaxed);
}

int64_t granules_of(const graph::MatmulPart& part, int64_t granule) {
  return (part.weight.rows + granule - 1) / granule;
}

// The pages that some token of the run can see.
struct PageRange {
  int64_t begin, end;
};
PageRange visible_pages(const graph::SequenceRun& run, int64_t window) {
  const int64_t first = window > 0 ? std::max<int64_t>(0, run.first_position - window + 1) : 0;
  const int64_t last = run.first_position + run.tokens - 1;
  return {first / kernels::kPageTokens, last / kernels::kPageTokens + 1};
}

class AttentionRunner {
 public:
  AttentionRunner(const graph::AttentionStep& step, const Pass& pass, const Worker& worker)
      : step_(step), pass_(pass), worker_(worker) {}

  void run() const {
    int64_t first_item = 0;
    int64_t next = take(worker_);
    bool merging = false;
    for (size_t s = 0; s < pass_.batch->sequences.size(); ++s) {
      const graph::SequenceRun& run = pass_.batch->sequences[s];
      kernels::AttentionArgs args = arguments(run);
      const int64_t splits = splits_of(run);
      const int64_t items = splits > 0 ? splits * step_.kv_heads : kernels::attention_items(args);
      merging = merging || splits > 1;
      for (; next < first_item + items; next = take(worker_)) {
        if (splits > 0) args.ahead = ahead_of(s, next - first_item + worker_.threads);
        run_item(args, run, splits, next - first_item);
      }
      first_item += items;
    }
    if (!merging) return;
    pass_.pool->barrier();
    merge_all();
  }

 private:
  // The pieces of a short run that threads may share, a split each; 0 = the ordinary kernel, which
  // goes through the same pieces in one item. Depends on the batch alone, so that all threads
  // agree.
  int64_t splits_of(const graph::SequenceRun& run) const {
    if (pass_.kernels->attention_split == nullptr || run.tokens > kernels::kQueryBlock ||
        run.row_begin + run.tokens > kSplitTokensMax)
      return 0;
    const PageRange pages = visible_pages(run, step_.window);
    return kernels::attention_piece(pages.end - 1) - kernels::attention_piece(pages.begin) + 1;
  }

  void run_item(const kernels::AttentionArgs& args, const graph::SequenceRun& run, int64_t splits,
                int64_t item) const {
    if (splits <= 1) {  // of one piece, an item is a kv head either way
      pass_.kernels->attention.run(args, item, item + 1, worker_.scratch);
      return;
    }
    const int64_t split = item % splits;
    const PageRange pages = piece_pages(run, splits, split);
    pass_.kernels->attention_split->run(args, item / splits, pages.begin, pages.end, split, splits,
                                        partials(run), worker_.scratch);
  }

  // The pages of item `item`, counted from the first of sequence `s`: what this thread takes next
  // when the others take one item each meanwhile. They matter where each item reads pages of its
  // own.
  kernels::AttentionAhead ahead_of(size_t s, int64_t item) const {
    for (; s < pass_.batch->sequences.size(); ++s) {
      const graph::SequenceRun& run = pass_.batch->sequences[s];
      const int64_t splits = splits_of(run);
      if (splits == 0) return {};
      if (item >= splits * step_.kv_heads) {
        item -= splits * step_.kv_heads;
        continue;
      }
      const PageRange pages = piece_pages(run, splits, item % splits);
      return {run.pages[static_cast<size_t>(step_.kv.group)] + pages.begin, pages.end - pages.begin,
              step_.kv.slot_offset + item / splits * step_.kv.slot_stride};
    }
    return {};
  }

  // The pages of one split.
  PageRange piece_pages(const graph::SequenceRun& run, int64_t splits, int64_t split) const {
    const PageRange pages = visible_pages(run, step_.window);
    const int64_t piece = kernels::attention_piece(pages.begin) + split;
    return {std::max(pages.begin, kernels::attention_piece_begin(piece)),
            split + 1 == splits ? pages.end : kernels::attention_piece_begin(piece + 1)};
  }

  void merge_all() const {
    for (const graph::SequenceRun& run : pass_.batch->sequences) {
      const int64_t splits = splits_of(run);
      if (splits <= 1) continue;
      const int64_t rows = run.tokens * step_.heads;
      const int64_t begin = rows * worker_.thread / worker_.threads;
      const int64_t end = rows * (worker_.thread + 1) / worker_.threads;
      if (begin < end)
        pass_.kernels->attention_split->merge(arguments(run), begin, end, splits, partials(run));
    }
  }

  float* partials(const graph::SequenceRun& run) const {
    const int64_t floats = step_.heads * kernels::kAttentionPiecesMax * (step_.head_dim + 2);
    return reinterpret_cast<float*>(pass_.partials) + run.row_begin * floats;
  }

  kernels::AttentionArgs arguments(const graph::SequenceRun& run) const {
    kernels::AttentionArgs args{};
    args.q = floats_at(pass_, step_.q) + run.row_begin * step_.q.width;
    args.q_stride = step_.q.width;
    args.out = floats_at(pass_, step_.out) + run.row_begin * step_.out.width;
    args.out_stride = step_.out.width;
    args.pages = run.pages[static_cast<size_t>(step_.kv.group)];
    args.slot_offset = step_.kv.slot_offset;
    args.slot_stride = step_.kv.slot_stride;
    args.kv_type = pass_.program->kv_type;
    args.tokens = run.tokens;
    args.first_position = run.first_position;
    args.heads = step_.heads;
    args.kv_heads = step_.kv_heads;
    args.head_dim = step_.head_dim;
    args.window = step_.window;
    args.scale = step_.scale;
    args.softcap = step_.softcap;
    args.sinks = step_.sinks;
    args.mask = step_.mask;
    return args;
  }

  const graph::AttentionStep& step_;
  const Pass& pass_;
  const Worker& worker_;
};

kernels::MatmulArgs arguments(const graph::MatmulStep& step, size_t part_index, const Pass& pass,
                              const Worker& worker, int64_t rows) {
  const graph::MatmulPart& part = step.parts[part_index];
  const PackedWeight* packed = (*worker.weights)[part_index];
  const bool panels = packed != nullptr && packed->state != PackedWeight::State::unmade;
  kernels::MatmulArgs args{};
  args.weights = part.weight.data;
  args.panels = panels ? packed->panels : nullptr;
  args.type = part.weight.type;
  args.n = part.weight.rows;
  args.k = part.weight.columns;
  args.m = rows;
  args.x = floats_at(pass, step.in);
  if (step.quantised_offset >= 0) {
    std::byte* block = pass.arena + step.quantised_offset;
    if (reads_arranged(*pass.kernels, rows))
      args.arranged = block;
    else
      args.xq = kernels::quantised_rows_at(block, step.rows_max, step.in.width);
  }
  args.out = floats_at(pass, part.out);
  args.out_stride = part.out.width;
  args.scratch = worker.scratch;
  args.row_sums = pass.kernels->row_sums;
  args.reading = pass.kernels->matmul.reading;
  args.next_row = -1;
  return args;
}

// One piece of the granules of all parts, one part after the other; `next` is the first granule of
// what the thread will probably do after it.
void run_piece(const graph::MatmulStep& step, const Pass& pass, const Worker& worker, int64_t rows,
               Granules piece, int64_t next) {
  const kernels::MatmulKernel& kernel = pass.kernels->matmul;
  const int64_t granule = kernel.granule;
  int64_t first = 0;  // granule of the part
  for (size_t p = 0; p < step.parts.size() && first < piece.end; ++p) {
    const int64_t last = first + granules_of(step.parts[p], granule);
    const Granules here = {std::max(piece.begin, first), std::min(piece.end, last)};
    if (here.begin < here.end) {
      PackedWeight* packed = (*worker.weights)[p];
      kernels::MatmulArgs args = arguments(step, p, pass, worker, rows);
      if (piece.end <= last && next < last) args.next_row = (next - first) * granule;
      const int64_t begin = (here.begin - first) * granule;
      const int64_t end = std::min((here.end - first) * granule, args.n);
      if (packed != nullptr && packed->state == PackedWeight::State::making)
        kernel.pack(args, begin, end, packed->panels);
      kernel.run(args, begin, end);
    }
    first = last;
  }
}

}  // namespace

void run_matmul_step(const graph::MatmulStep& step, const Pass& pass, const Worker& worker,
                     int64_t rows) {
  int64_t granules = 0;
  for (const graph::MatmulPart& part : step.parts)
    granules += granules_of(part, pass.kernels->matmul.granule);
  const Pieces pieces(granules, worker.threads);
  for (int64_t index = take(worker);; index = take(worker)) {
    const Granules piece = pieces.at(index);
    if (piece.begin == piece.end) return;
    run_piece(step, pass, worker, rows, piece, pieces.at(index + worker.threads).begin);
  }
}

void run_attention_step(const graph::AttentionStep& step, const Pass& pass, const Worker& worker) {
  AttentionRunner(step, pass, worker).run();
}

}  // namespace optima::backend::cpu
