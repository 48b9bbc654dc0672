// The roofs come from optima_probe, as those of `optima bench` do; it knows no fp32 roof, since no
// product of weights is bound by it. Attention is.

#include "bench_common.h"

#include <optima/optima.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/isa.h"

namespace optima::kernels {
namespace {

constexpr int kRounds = 1 << 20;
constexpr int kSums = 12;  // enough chains to hide the latency of a multiply-add

// Each: kSums chains of multiply-adds in registers; the result depends on all of them.
#if defined(__x86_64__)
[[gnu::target("avx512f")]] float multiply_avx512() {
  __m512 sum[kSums] = {};
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (__m512& s : sum) s = _mm512_fmadd_ps(s, a, b);
  }
  float total = 0;
  for (const __m512& s : sum) total += s[0];
  return total;
}

[[gnu::target("avx2,fma")]] float multiply_avx2() {
  __m256 sum[kSums] = {};
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (__m256& s : sum) s = _mm256_fmadd_ps(s, a, b);
  }
  float total = 0;
  for (const __m256& s : sum) total += s[0];
  return total;
}
#endif

typedef float Vec4 __attribute__((vector_size(16)));

float multiply_base() {
  Vec4 sum[kSums] = {};
  const Vec4 a = Vec4{} + 0.999f, b = Vec4{} + 1e-3f;
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (Vec4& s : sum) s = s * a + b;
  }
  float total = 0;
  for (const Vec4& s : sum) total += s[0];
  return total;
}

struct Multiply {
  float (*run)();
  int lanes;
};

Multiply best_multiply() {
#if defined(__x86_64__)
  const IsaMask isa = host_isa();
  if ((isa & kIsaAvx512) == kIsaAvx512) return {multiply_avx512, 16};
  if ((isa & kIsaAvx2) == kIsaAvx2) return {multiply_avx2, 8};
#endif
  return {multiply_base, 4};
}

// The best of several passes: a slower one had to share its core.
double f32_roof(int threads) {
  const Multiply multiply = best_multiply();
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i)
      workers.emplace_back([&] { benchmark::DoNotOptimize(multiply.run()); });
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, 1e-9 * kRounds * kSums * multiply.lanes * threads / took.count());
  }
  return best;
}

Roofs measure(int threads) {
  optima_probe_options options = OPTIMA_PROBE_OPTIONS_INIT;
  options.threads = threads;
  options.flags = OPTIMA_PROBE_DRAM | OPTIMA_PROBE_INT8;
  optima_probe_report report = OPTIMA_PROBE_REPORT_INIT;
  if (optima_probe(&options, &report, nullptr) != OPTIMA_OK) return {};
  const Roofs roofs = {report.dram_read_gb_per_s, report.int8_roof_tmac_per_s * 1e3,
                       f32_roof(threads)};
  fprintf(stderr, "roofs of %d threads: read %.1f GB/s, int8 %.0f GMAC/s, fp32 %.0f GMAC/s\n",
          threads, roofs.read, roofs.int8, roofs.f32);
  return roofs;
}

}  // namespace

const Roofs& measured_roofs(int threads) {
  static std::mutex mutex;
  static std::map<int, Roofs> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(threads);
  return found != known.end() ? found->second : known[threads] = measure(threads);
}

void count_work(benchmark::State& state, const Done& done, Roof roof) {
  using benchmark::Counter;
  const Roofs& roofs = measured_roofs(state.threads());
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] = Counter(runs * done.gb, Counter::kIsRate);
  state.counters["GMAC/s"] = Counter(runs * done.gmac, Counter::kIsRate);
  const double work = roof == Roof::read ? done.gb : done.gmac;
  const double limit = roof == Roof::read   ? roofs.read
                       : roof == Roof::int8 ? roofs.int8
                                            : roofs.f32;
  const char* name = roof == Roof::read   ? "% of read"
                     : roof == Roof::int8 ? "% of int8"
                                          : "% of fp32";
  if (limit > 0) state.counters[name] = Counter(100 * runs * work / limit, Counter::kIsRate);
}

}  // namespace optima::kernels
