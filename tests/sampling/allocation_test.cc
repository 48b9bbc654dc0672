// A sampler allocates nothing per token once it has taken its first step. The operators below
// replace those of the whole test program, all forms that its code uses.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "sampling/sampler.h"

namespace {

std::atomic<int64_t> allocations{0};

void* counted(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace optima::sampling {
namespace {

TEST(Sampler, AllocatesNothingPerStep) {
  constexpr size_t kVocabulary = 32000;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocabulary), scratch(kVocabulary);
  std::vector<int32_t> history;
  history.reserve(1000);
  const std::vector<SamplingParams> all = {
      {},
      {.temperature = 1},
      {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f},
      {.temperature = 0.8f, .top_p = 0.95f},
      {.temperature = 1, .top_p = 0.9f, .typical_p = 0.9f},
      {.temperature = 2, .top_k = 20000, .min_p = 1e-6f},
      {.temperature = 1,
       .repetition_penalty = 1.1f,
       .frequency_penalty = 1,
       .logit_bias = {{1, 1}}},
      {.repetition_penalty = 1.1f, .presence_penalty = 1, .penalty_window = 64},
  };
  for (size_t index = 0; index < all.size(); ++index) {
    const SamplingParams& params = all[index];
    Sampler sampler(params, kVocabulary);
    history.clear();
    for (int64_t step = 0; step < 12; ++step) {
      for (float& logit : logits) logit = normal(random);
      scratch = logits;
      const int64_t before = allocations;
      const Result<Pick> pick = sampler.sample(scratch, history, step);
      ASSERT_TRUE(pick.ok());
      ASSERT_TRUE(step == 0 || allocations == before) << "case " << index << ", step " << step;
      history.push_back(pick->token);
    }
  }
}

}  // namespace
}  // namespace optima::sampling
