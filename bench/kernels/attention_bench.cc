// Attention: every variant that this CPU has, over the shapes of known models, KV in shuffled
// pages.
//
//   <variant>/<model>/prefill:512/at:<depth>   multiply-adds/s (scores and values) and the share of
//                                              the fp32 roof
//   <split variant>/<model>/decode/at:<depth>  GB/s of KV read and the share of the read roof
// A decode iteration goes through all layers of the model, as a token does, so that the KV is read
// from where it would be. Each thread takes every n-th work item. Choose with --benchmark_filter.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench_common.h"
#include "kernels/attention/attention.h"

namespace optima::kernels {
namespace {

struct Model {
  const char* name;
  int64_t layers;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  int64_t window;
};

constexpr Model kModels[] = {{"smollm2", 30, 9, 3, 64, 0},
                             {"gemma3-270m-global", 3, 4, 1, 256, 0},
                             {"gemma3-270m-window", 15, 4, 1, 256, 512},
                             {"llama-1b", 16, 32, 8, 64, 0},
                             {"llama-8b", 32, 32, 8, 128, 0}};

enum class Phase { prefill, decode };

struct Shape {
  Model model;
  Phase phase;
  int64_t depth;
  KvType kv_type;

  int64_t tokens() const { return phase == Phase::prefill ? 512 : 1; }
  int64_t layers() const { return phase == Phase::prefill ? 1 : model.layers; }
  int64_t pages() const { return (depth + tokens() + kPageTokens - 1) / kPageTokens; }
  // The first page that a query sees.
  int64_t first_page() const {
    return model.window == 0 ? 0 : std::max<int64_t>(0, depth + 1 - model.window) / kPageTokens;
  }
  int64_t page_bytes() const {
    return layers() * model.kv_heads * kv_slot_bytes(kv_type, model.head_dim);
  }
  // Keys that the queries of one head see, all together.
  int64_t keys_seen() const {
    int64_t sum = 0;
    for (int64_t p = depth; p < depth + tokens(); ++p)
      sum += model.window == 0 ? p + 1 : std::min(p + 1, model.window);
    return sum;
  }
  bool operator==(const Shape& other) const {
    return model.name == other.model.name && phase == other.phase && depth == other.depth &&
           kv_type == other.kv_type;
  }
};

struct Problem {
  Shape shape;
  int64_t threads;
  Buffer kv;
  std::vector<unsigned char*> pages;
  std::vector<float> q;
  mutable std::vector<float> out;
  mutable std::vector<float> partial;  // of all layers
  mutable std::atomic<int64_t> arrived{0};

  Problem(const Shape& of, int64_t thread_count)
      : shape(of),
        threads(thread_count),
        kv(static_cast<size_t>(of.pages() * of.page_bytes())),
        q(static_cast<size_t>(of.tokens() * row())),
        out(q.size()),
        partial(static_cast<size_t>(of.layers() * of.model.heads * splits() *
                                    (of.model.head_dim + 2))) {
    for (int64_t page = 0; page < shape.pages(); ++page)
      pages.push_back(kv.data() + page * shape.page_bytes());
    std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
    for (int64_t page = 0; page < shape.first_page(); ++page)
      pages[static_cast<size_t>(page)] = nullptr;
    for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 255) / 127 - 1;
  }

  int64_t row() const { return shape.model.heads * shape.model.head_dim; }
  int64_t first_piece() const { return attention_piece(shape.first_page()); }
  int64_t splits() const { return attention_piece(shape.pages() - 1) - first_piece() + 1; }

  AttentionArgs args(int64_t layer) const {
    const Model& model = shape.model;
    AttentionArgs filled = {};
    filled.q = q.data();
    filled.out = out.data();
    filled.q_stride = filled.out_stride = row();
    filled.pages = pages.data();
    filled.slot_stride = kv_slot_bytes(shape.kv_type, model.head_dim);
    filled.slot_offset = layer * model.kv_heads * filled.slot_stride;
    filled.kv_type = shape.kv_type;
    filled.tokens = shape.tokens();
    filled.first_position = shape.depth;
    filled.heads = model.heads;
    filled.kv_heads = model.kv_heads;
    filled.head_dim = model.head_dim;
    filled.window = model.window;
    filled.scale = 0.125f;
    return filled;
  }

  // All threads meet; a turn is `threads` arrivals.
  void meet() const {
    const int64_t turn = arrived.fetch_add(1) / threads;
    while (arrived.load() < (turn + 1) * threads) std::this_thread::yield();
  }

  Done done() const {
    const Model& model = shape.model;
    const double bytes =
        static_cast<double>((shape.pages() - shape.first_page()) * shape.page_bytes());
    const double macs =
        static_cast<double>(2 * shape.layers() * model.heads * model.head_dim * shape.keys_seen());
    return {bytes * 1e-9, macs * 1e-9};
  }
};

// The last problem asked for; all threads of a benchmark ask for the same one.
std::shared_ptr<const Problem> problem_for(const Shape& shape, int64_t threads) {
  static std::mutex mutex;
  static std::shared_ptr<const Problem> last;
  const std::lock_guard<std::mutex> lock(mutex);
  if (last == nullptr || !(last->shape == shape) || last->threads != threads) {
    last = nullptr;  // freed before the next is made
    last = std::make_shared<const Problem>(shape, threads);
  }
  return last;
}

// Each thread reports its share.
void report(benchmark::State& state, const Problem& problem, Roof roof) {
  const Done all = problem.done();
  count_work(state, {all.gb / state.threads(), all.gmac / state.threads()}, roof);
}

void prefill(benchmark::State& state, const AttentionKernel& kernel, const Shape& shape) {
  const auto problem = problem_for(shape, state.threads());
  const AttentionArgs args = problem->args(0);
  std::vector<unsigned char> scratch(
      kernel.scratch_bytes(args.heads, args.kv_heads, args.head_dim));
  const int64_t items = attention_items(args);
  for (auto _ : state) {
    for (int64_t item = state.thread_index(); item < items; item += state.threads())
      kernel.run(args, item, item + 1, scratch.data());
    problem->meet();
  }
  report(state, *problem, Roof::f32);
}

struct PageRange {
  int64_t begin;
  int64_t end;
};

PageRange piece_pages(const Problem& problem, int64_t split) {
  const int64_t piece = problem.first_piece() + split;
  return {std::max(problem.shape.first_page(), attention_piece_begin(piece)),
          split + 1 == problem.splits() ? problem.shape.pages() : attention_piece_begin(piece + 1)};
}

// The pages of an item, as the engine names those of the thread's next one.
AttentionAhead ahead_of(const Problem& problem, const AttentionArgs& args, int64_t item) {
  if (item >= args.kv_heads * problem.splits()) return {};
  const PageRange pages = piece_pages(problem, item % problem.splits());
  return {args.pages + pages.begin, pages.end - pages.begin,
          args.slot_offset + item / problem.splits() * args.slot_stride};
}

// One layer's pieces, those of this thread.
void run_pieces(const Problem& problem, const AttentionSplitKernel& kernel, int64_t layer,
                const benchmark::State& state, float* partial, void* scratch) {
  AttentionArgs args = problem.args(layer);
  const int64_t splits = problem.splits();
  for (int64_t item = state.thread_index(); item < args.kv_heads * splits;
       item += state.threads()) {
    const int64_t split = item % splits;
    const PageRange pages = piece_pages(problem, split);
    args.ahead = ahead_of(problem, args, item + state.threads());
    kernel.run(args, item / splits, pages.begin, pages.end, split, splits, partial, scratch);
  }
}

void decode(benchmark::State& state, const AttentionSplitKernel& kernel, const Shape& shape) {
  const auto problem = problem_for(shape, state.threads());
  const Model& model = shape.model;
  std::vector<unsigned char> scratch(
      kernel.scratch_bytes(model.heads, model.kv_heads, model.head_dim));
  const int64_t splits = problem->splits();
  const int64_t stride = model.heads * splits * (model.head_dim + 2);
  const int64_t thread = state.thread_index(), threads = state.threads();
  for (auto _ : state) {
    for (int64_t layer = 0; layer < shape.layers(); ++layer)
      run_pieces(*problem, kernel, layer, state, problem->partial.data() + layer * stride,
                 scratch.data());
    problem->meet();
    for (int64_t layer = 0; layer < shape.layers(); ++layer)
      kernel.merge(problem->args(layer), model.heads * thread / threads,
                   model.heads * (thread + 1) / threads, splits,
                   problem->partial.data() + layer * stride);
    problem->meet();
  }
  report(state, *problem, Roof::read);
}

template <typename Kernel>
void register_shape(const Variant<Kernel>& row, const Shape& shape,
                    void (*run)(benchmark::State&, const Kernel&, const Shape&)) {
  const std::string name = std::string(row.name) + "/" + shape.model.name +
                           (shape.phase == Phase::prefill ? "/prefill:512" : "/decode") +
                           "/at:" + std::to_string(shape.depth) + "/" + kv_type_name(shape.kv_type);
  const Kernel& kernel = row.fn;
  benchmark::RegisterBenchmark(
      name.c_str(), [&kernel, shape, run](benchmark::State& state) { run(state, kernel, shape); })
      ->ThreadRange(1, 2)
      ->UseRealTime();
}

int register_all() {
  const IsaMask available = host_isa();
  for (const Model& model : kModels) {
    for (const auto& row : attention_variants()) {
      if ((row.isa & ~available) != 0) continue;
      for (const int64_t depth : {0, 4096})
        register_shape(row, {model, Phase::prefill, depth, KvType::f16}, prefill);
    }
    for (const auto& row : attention_split_variants()) {
      if ((row.isa & ~available) != 0) continue;
      for (const int64_t depth : {512, 4096, 7900})
        for (const KvType type : {KvType::f16, KvType::q8_0})
          register_shape(row, {model, Phase::decode, depth, type}, decode);
    }
  }
  return 0;
}

[[maybe_unused]] const int kRegistered = register_all();

}  // namespace
}  // namespace optima::kernels
