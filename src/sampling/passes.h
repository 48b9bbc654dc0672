// The passes over a whole vocabulary that sampling is made of, as functions that the caller
// chooses: the engine brings those of the CPU's kernels (kernels/vocabulary, which makes the same
// promises). They go by blocks, so that who looks for a few logits passes over most of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace optima::sampling {

inline constexpr size_t kBlock = 256;  // logits; the last block may be shorter

constexpr size_t blocks_of(size_t logits) {
  return (logits + kBlock - 1) / kBlock;
}

struct Passes {
  // maxima[b]: the largest logit of block b, NaN passed over; -inf when there is none. Returns how
  // many are NaN.
  int64_t (*maxima)(const float* logits, int64_t count, float* maxima);
  // exp((logit - highest) / temperature) to 2e-7 of it; 0 below about exp(-87), and for NaN.
  void (*weights)(const float* logits, int64_t count, float highest, float temperature,
                  float* weights);
  // masses[b]: the sum of the weights of block b, in double.
  void (*masses)(const float* logits, int64_t count, float highest, float temperature,
                 double* masses);
};

// Portable ones.
extern const Passes kPlainPasses;

// Weights are relative to the largest logit, whose weight is 1.
struct Scale {
  float highest;
  float temperature = 1;
};

// What is known of a step's logits. What is not costs a pass where it is needed.
struct Survey {
  const Passes* passes = &kPlainPasses;
  float highest = 0;               // of all that are numbers; -inf when there is none
  int64_t nans = 0;                // how many are none
  std::span<const float> maxima;   // of the blocks; empty: not known
  std::span<const double> masses;  // of the blocks at temperature 1; empty: not known
};

// `maxima` holds what the survey refers to.
Survey survey_of(const Passes& passes, std::span<const float> logits, std::vector<float>& maxima);

// The masses of all blocks, into `masses`; returns their sum.
double block_masses(const Passes& passes, std::span<const float> logits, Scale scale,
                    std::vector<double>& masses);
double sum_of(std::span<const double> masses);

// The sum of exp(logit - highest). Allocates nothing, nor does the next.
double exp_sum(const Passes& passes, std::span<const float> logits, float highest);

// ln of the sum of exp(logit), of logits of which nothing is known. NaN counts as -inf; -inf when
// nothing is left.
double log_sum_exp(const Passes& passes, std::span<const float> logits);

// The token at fraction `u` in [0, 1) of the total weight: first its block, then its place there.
// masses: those of the blocks at this scale. -1 when nothing weighs anything.
int32_t draw(const Passes& passes, std::span<const float> logits, Scale scale,
             std::span<const double> masses, double u);

}  // namespace optima::sampling
