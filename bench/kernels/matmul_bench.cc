// Matrix products: every variant that this CPU has, over the shapes of the two test models.
//
//   <variant>/<type>/<n>x<k>/m:<M>   GB/s of weights read and multiply-adds/s with M activation
//                                    rows, and the share of the roof of the same run that bounds it
// and the same from panels, as <variant>+panels, with the making of them as <variant>+pack.
// Each thread takes a contiguous share of the weight rows. Choose rows with --benchmark_filter.

#include <benchmark/benchmark.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench_common.h"
#include "kernels/matmul/matmul.h"

namespace optima::kernels {
namespace {

struct Shape {
  WeightType type;
  int64_t n;
  int64_t k;
};

constexpr Shape kGemm[] = {{WeightType::q4_1, 576, 576},   {WeightType::q4_1, 192, 576},
                           {WeightType::q4_1, 1536, 576},  {WeightType::q4_1, 576, 1536},
                           {WeightType::q5_0, 1024, 640},  {WeightType::q8_0, 1024, 640},
                           {WeightType::q4_k, 640, 1024},  {WeightType::q6_k, 640, 2048},
                           {WeightType::q4_0, 2048, 2048}, {WeightType::q4_k, 2048, 2048},
                           {WeightType::q5_k, 2048, 2048}, {WeightType::q6_k, 2048, 2048},
                           {WeightType::q8_0, 2048, 2048}, {WeightType::q2_k, 2048, 2048},
                           {WeightType::q3_k, 2048, 2048}, {WeightType::iq4_nl, 2048, 2048},
                           {WeightType::mxfp4, 2048, 2048}};

// Weights that are multiplied as floats.
constexpr Shape kFloat[] = {{WeightType::f32, 2048, 2048},
                            {WeightType::f16, 2048, 2048},
                            {WeightType::bf16, 2048, 2048},
                            {WeightType::bf16, 576, 1536},
                            {WeightType::bf16, 1021, 577}};

// Far larger than the last-level cache.
constexpr Shape kGemv[] = {{WeightType::q4_1, 400000, 576},    {WeightType::q8_0, 262144, 640},
                           {WeightType::q8_0, 49152, 576},     {WeightType::q5_0, 400000, 640},
                           {WeightType::q4_0, 131072, 2048},   {WeightType::q4_k, 131072, 2048},
                           {WeightType::q5_k, 131072, 2048},   {WeightType::q6_k, 98304, 2048},
                           {WeightType::q3_k, 131072, 2048},   {WeightType::q2_k, 131072, 2048},
                           {WeightType::iq4_nl, 131072, 2048}, {WeightType::iq4_xs, 131072, 2048},
                           {WeightType::mxfp4, 131072, 2048},  {WeightType::f16, 65536, 2048}};

struct Problem {
  Shape shape;
  int64_t m;
  Buffer weights;
  std::vector<float> x;
  std::vector<float> out;
  Buffer xq_block;
  QuantisedRows xq;
  Buffer panels;
  mutable std::mutex mutex;
  mutable std::unique_ptr<Buffer> arranged;

  Problem(const Shape& s, int64_t rows, const MatmulKernel* packer)
      : shape(s),
        m(rows),
        weights(static_cast<size_t>(s.n) *
                row_bytes(*find_weight_type(static_cast<int32_t>(s.type)), s.k)),
        x(static_cast<size_t>(rows * s.k)),
        out(static_cast<size_t>(rows * s.n)),
        xq_block(quantised_rows_bytes(rows, s.k)),
        xq(quantised_rows_at(xq_block.data(), rows, s.k)),
        panels(panels_bytes(packer, s)) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 255) - 127.0f;
    best(quantise_rows_variants(), host_isa()).fn(x.data(), s.k, 0, rows, xq);
    if (packer == nullptr) return;
    std::vector<unsigned char> scratch(packer->scratch_bytes(rows, s.k));
    MatmulArgs args = {};
    args.weights = weights.data();
    args.type = s.type;
    args.n = s.n;
    args.k = s.k;
    args.scratch = scratch.data();
    packer->pack(args, 0, s.n, panels.data());
  }

  // The activations as the kernel wants them for many rows, made once.
  const void* arranged_for(const MatmulKernel& kernel) const {
    const std::lock_guard<std::mutex> lock(mutex);
    if (arranged == nullptr) {
      arranged = std::make_unique<Buffer>(quantised_rows_bytes(m, shape.k));
      kernel.arrange_rows(x.data(), shape.k, 0, m, arranged->data());
    }
    return arranged->data();
  }

  static size_t panels_bytes(const MatmulKernel* packer, const Shape& s) {
    return packer == nullptr ? 64 : packer->panels_bytes(s.type, s.n, s.k) + 8192;
  }
};

constexpr int64_t kReadBoundRows = 4;

bool is_float(WeightType type) {
  return type == WeightType::f32 || type == WeightType::f16 || type == WeightType::bf16;
}

// What is measured: products of the file's rows or of panels, or making panels.
enum class Way { file, panels, pack };

// What bounds a product: memory as long as a weight meets few rows.
Roof roof_of(const Problem& p, Way way) {
  if (way == Way::pack || p.m <= kReadBoundRows) return Roof::read;
  return is_float(p.shape.type) ? Roof::f32 : Roof::int8;
}

void run_share(benchmark::State& state, const MatmulKernel& kernel, const Problem& p, Way way) {
  std::vector<unsigned char> scratch(
      kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(p.m, p.shape.k));
  MatmulArgs args = {};
  args.weights = p.weights.data();
  args.type = p.shape.type;
  args.n = p.shape.n;
  args.k = p.shape.k;
  args.m = p.m;
  args.x = p.x.data();
  args.xq = p.xq;
  args.out = const_cast<float*>(p.out.data());
  args.out_stride = p.shape.n;
  args.scratch = scratch.data();
  args.reading = kernel.reading;
  args.next_row = -1;
  if (kernel.arrange_rows != nullptr && p.m >= kernel.arrange_from && !is_float(p.shape.type)) {
    args.arranged = p.arranged_for(kernel);
  }
  if (way == Way::panels) args.panels = p.panels.data();
  const int64_t pieces = p.shape.n / kernel.granule;
  const int64_t begin = pieces * state.thread_index() / state.threads() * kernel.granule;
  const int64_t end = state.thread_index() + 1 == state.threads()
                          ? p.shape.n
                          : pieces * (state.thread_index() + 1) / state.threads() * kernel.granule;
  for (auto _ : state) {
    if (way == Way::pack) {
      kernel.pack(args, begin, end, p.panels.data());
    } else {
      kernel.run(args, begin, end);
    }
    benchmark::ClobberMemory();
  }
  const double rows = static_cast<double>(end - begin) * 1e-9;
  const Done done = {rows * static_cast<double>(p.weights.size()) / static_cast<double>(p.shape.n),
                     way == Way::pack ? 0 : rows * static_cast<double>(p.shape.k * p.m)};
  count_work(state, done, roof_of(p, way));
}

// The last problem asked for; all threads of a benchmark ask for the same one.
std::shared_ptr<const Problem> problem_for(const Shape& shape, int64_t m,
                                           const MatmulKernel* packer = nullptr) {
  static std::mutex mutex;
  static std::shared_ptr<const Problem> last;
  static const void* last_pack;
  const void* pack = packer == nullptr ? nullptr : reinterpret_cast<const void*>(packer->pack);
  const std::lock_guard<std::mutex> lock(mutex);
  if (last == nullptr || last_pack != pack || last->m != m || last->shape.type != shape.type ||
      last->shape.n != shape.n || last->shape.k != shape.k) {
    last = nullptr;  // freed before the next is made
    last = std::make_shared<const Problem>(shape, m, packer);
    last_pack = pack;
  }
  return last;
}

void register_product(const Variant<MatmulKernel>& row, const Shape& shape, int64_t m, Way way) {
  constexpr const char* kSuffix[] = {"", "+panels", "+pack"};
  const std::string name = std::string(row.name) + kSuffix[static_cast<int>(way)] + "/" +
                           find_weight_type(static_cast<int32_t>(shape.type))->name + "/" +
                           std::to_string(shape.n) + "x" + std::to_string(shape.k) +
                           "/m:" + std::to_string(m);
  const MatmulKernel& kernel = row.fn;
  benchmark::RegisterBenchmark(
      name.c_str(),
      [&kernel, shape, m, way](benchmark::State& state) {
        run_share(state, kernel, *problem_for(shape, m, way == Way::file ? nullptr : &kernel), way);
      })
      ->ThreadRange(1, 2)
      ->UseRealTime();
}

// Of a shape, products with few and with many activation rows.
void register_shape(const Variant<MatmulKernel>& row, const Shape& shape,
                    std::initializer_list<int64_t> sizes) {
  const bool packs =
      row.fn.pack != nullptr && row.fn.panels_bytes(shape.type, shape.n, shape.k) != 0;
  for (const int64_t m : sizes) register_product(row, shape, m, Way::file);
  if (!packs) return;
  for (const int64_t m : sizes) register_product(row, shape, m, Way::panels);
  register_product(row, shape, 1, Way::pack);
}

void quantise(benchmark::State& state, QuantiseRowsFn fn, int64_t k) {
  constexpr int64_t kRows = 512;
  const auto problem = problem_for({WeightType::q8_0, 32, k}, kRows);
  for (auto _ : state) {
    fn(problem->x.data(), k, 0, kRows, problem->xq);
    benchmark::ClobberMemory();
  }
  state.counters["Gvalues/s"] = benchmark::Counter(
      static_cast<double>(kRows * k) * 1e-9 * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

int register_all() {
  const IsaMask available = host_isa();
  for (const auto& row : matmul_variants()) {
    if ((row.isa & ~available) != 0) continue;
    for (const Shape& shape : kGemv) register_shape(row, shape, {1, 2, 4, 8, 16, 32});
    for (const Shape& shape : kGemm) register_shape(row, shape, {512});
    for (const Shape& shape : kFloat) register_shape(row, shape, {1, 4, 8, 16, 64, 512});
  }
  for (const auto& row : quantise_rows_variants()) {
    if ((row.isa & ~available) != 0) continue;
    benchmark::RegisterBenchmark(row.name, quantise, row.fn, int64_t{576});
  }
  return 0;
}

[[maybe_unused]] const int kRegistered = register_all();

}  // namespace
}  // namespace optima::kernels
