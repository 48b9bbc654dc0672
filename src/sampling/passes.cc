// The plain passes, and what is made of any.
#include "sampling/passes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sampling/exponential.h"

namespace optima::sampling {
namespace {

int64_t plain_maxima(const float* logits, int64_t count, float* maxima) {
  std::span<const float> left{logits, static_cast<size_t>(count)};
  int64_t nans = 0;
  while (!left.empty()) {
    const Extent extent = extent_of(left.first(std::min(kBlock, left.size())));
    *maxima++ = extent.highest;
    nans += extent.nans;
    left = left.subspan(std::min(kBlock, left.size()));
  }
  return nans;
}

// In two loops, each of which becomes vector code.
void plain_weights(const float* logits, int64_t count, float highest, float temperature,
                   float* weights) {
  for (int64_t i = 0; i < count; ++i) weights[i] = (logits[i] - highest) / temperature;
  for (int64_t i = 0; i < count; ++i) weights[i] = exp_of_negative(weights[i]);
}

void plain_masses(const float* logits, int64_t count, float highest, float temperature,
                  double* masses) {
  constexpr size_t kLanes = 8;
  std::array<float, kBlock> terms;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min<int64_t>(kBlock, count - begin);
    terms.fill(0);
    plain_weights(logits + begin, block, highest, temperature, terms.data());
    std::array<double, kLanes> sums{};
    for (size_t i = 0; i < kBlock; i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += terms[i + lane];
    *masses++ = sum_of(sums);
  }
}

int64_t length(std::span<const float> logits) {
  return static_cast<int64_t>(logits.size());
}

// What draw() steps over on its way to `target`.
struct Way {
  double target;
  double passed = 0;
  int32_t last = -1;  // index of the last weight above 0

  // Whether the target lies within `weight`; else it is passed.
  bool ends_in(double weight, size_t index) {
    if (weight == 0) return false;
    last = static_cast<int32_t>(index);
    if (target < passed + weight) return true;
    passed += weight;
    return false;
  }
};

}  // namespace

const Passes kPlainPasses = {plain_maxima, plain_weights, plain_masses};

Survey survey_of(const Passes& passes, std::span<const float> logits, std::vector<float>& maxima) {
  maxima.resize(blocks_of(logits.size()));
  Survey survey;
  survey.passes = &passes;
  survey.nans = passes.maxima(logits.data(), length(logits), maxima.data());
  survey.highest = -std::numeric_limits<float>::infinity();
  for (const float maximum : maxima) survey.highest = std::max(survey.highest, maximum);
  survey.maxima = maxima;
  return survey;
}

double sum_of(std::span<const double> masses) {
  double sum = 0;
  for (const double mass : masses) sum += mass;
  return sum;
}

double block_masses(const Passes& passes, std::span<const float> logits, Scale scale,
                    std::vector<double>& masses) {
  masses.resize(blocks_of(logits.size()));
  passes.masses(logits.data(), length(logits), scale.highest, scale.temperature, masses.data());
  return sum_of(masses);
}

double exp_sum(const Passes& passes, std::span<const float> logits, float highest) {
  constexpr size_t kBlocks = 64;
  std::array<double, kBlocks> masses;
  double sum = 0;
  while (!logits.empty()) {
    const auto part = logits.first(std::min(kBlocks * kBlock, logits.size()));
    logits = logits.subspan(part.size());
    passes.masses(part.data(), length(part), highest, 1, masses.data());
    sum += sum_of({masses.data(), blocks_of(part.size())});
  }
  return sum;
}

double log_sum_exp(const Passes& passes, std::span<const float> logits) {
  constexpr size_t kBlocks = 64;
  std::array<float, kBlocks> maxima;
  float highest = -std::numeric_limits<float>::infinity();
  for (auto left = logits; !left.empty();) {
    const auto part = left.first(std::min(kBlocks * kBlock, left.size()));
    left = left.subspan(part.size());
    passes.maxima(part.data(), length(part), maxima.data());
    for (size_t i = 0; i < blocks_of(part.size()); ++i) highest = std::max(highest, maxima[i]);
  }
  if (!std::isfinite(highest)) return highest;
  return highest + std::log(exp_sum(passes, logits, highest));
}

int32_t draw(const Passes& passes, std::span<const float> logits, Scale scale,
             std::span<const double> masses, double u) {
  Way blocks{u * sum_of(masses)};
  for (size_t b = 0; b < masses.size() && !blocks.ends_in(masses[b], b); ++b) {
  }
  if (blocks.last < 0) return -1;
  // Where rounding has led past the end, the last block that weighs something has been passed too.
  const auto chosen = static_cast<size_t>(blocks.last);
  Way tokens{blocks.target, sum_of(masses.first(chosen))};
  const auto block =
      logits.subspan(chosen * kBlock, std::min(kBlock, logits.size() - chosen * kBlock));
  std::array<float, kBlock> weights;
  passes.weights(block.data(), length(block), scale.highest, scale.temperature, weights.data());
  for (size_t i = 0; i < block.size() && !tokens.ends_in(weights[i], i); ++i) {
  }
  return static_cast<int32_t>(chosen * kBlock) + tokens.last;
}

}  // namespace optima::sampling
