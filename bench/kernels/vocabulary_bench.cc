// Passes over the logits of a vocabulary: every variant that this CPU has.
//
//   <variant>/<pass>/<vocabulary>   GB/s of logits
// One thread, as the sampler of a request is; the logits are in a near cache, as the head leaves
// them. Choose with --benchmark_filter.

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "bench_common.h"
#include "kernels/vocabulary/vocabulary.h"

namespace optima::kernels {
namespace {

constexpr float kHighest = 40;

std::vector<float> logits_of(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(static_cast<size_t>(count));
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// Calls pass(logits, count) again and again.
template <typename Pass>
void register_pass(const std::string& name, int64_t vocabulary, Pass pass) {
  benchmark::RegisterBenchmark(name.c_str(), [vocabulary, pass](benchmark::State& state) mutable {
    const std::vector<float> logits = logits_of(vocabulary);
    for ([[maybe_unused]] auto round : state) pass(logits.data(), vocabulary);
    state.SetBytesProcessed(state.iterations() * vocabulary * static_cast<int64_t>(sizeof(float)));
  });
}

void register_row(const Variant<VocabularyKernel>& row, int64_t vocabulary) {
  const VocabularyKernel kernel = row.fn;
  const std::string size = "/" + std::to_string(vocabulary);
  const auto blocks = static_cast<size_t>(vocabulary / kVocabularyBlock + 1);
  std::vector<float> maxima(blocks);
  register_pass(std::string(row.name) + "/maxima" + size, vocabulary,
                [kernel, maxima](const float* x, int64_t count) mutable {
                  benchmark::DoNotOptimize(kernel.maxima(x, count, maxima.data()));
                });
  std::vector<double> masses(blocks);
  for (const float temperature : {1.0f, 0.8f}) {
    const std::string pass = temperature == 1 ? "/masses" : "/masses_at_0.8";
    register_pass(row.name + pass + size, vocabulary,
                  [kernel, masses, temperature](const float* x, int64_t count) mutable {
                    kernel.masses(x, count, kHighest, temperature, masses.data());
                    benchmark::DoNotOptimize(masses.data());
                  });
  }
}

int register_all() {
  const IsaMask available = host_isa();
  for (const auto& row : vocabulary_variants())
    if ((row.isa & ~available) == 0)
      for (const int64_t vocabulary : {49152, 262144}) register_row(row, vocabulary);
  return 0;
}

[[maybe_unused]] const int kRegistered = register_all();

}  // namespace
}  // namespace optima::kernels
