// Logits -> token. The chain is fixed: logit bias; repetition, frequency, presence penalty; top-k,
// typical, top-p, min-p; temperature; draw (why this order: truncation.cc). Each stage is a pure
// function in its own file.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sampling/truncation.h"

namespace optima::sampling {

// Zero is the default and the natural value of every field.
struct SamplingParams {
  float temperature = 0;         // 0 = greedy
  int32_t top_k = 0;             // 0 = all
  float top_p = 0;               // 0 or 1 = off
  float min_p = 0;               // 0 = off
  float typical_p = 0;           // 0 or 1 = off
  float repetition_penalty = 0;  // 0 or 1 = off; > 1 discourages      Keskar et al. 2019 (CTRL)
  float presence_penalty = 0;    // subtracted once for a token that occurred
  float frequency_penalty = 0;   // subtracted per occurrence
  int32_t penalty_window = 0;    // last tokens, of prompt and output, looked at; 0 = all
  uint64_t seed = 0;             // 0 is a seed like any other
  int32_t logprobs = 0;          // how many top alternatives to report; the chosen one is always
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // added; -inf bans
};

// Checks ranges (NaN, negatives, top_p > 1, ids out of vocabulary); the message names field,
// value and range.
Status validate(const SamplingParams& params, int32_t vocabulary_size);

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;  // natural log of the model's own softmax, before bias, penalties, temperature
};

struct Pick {
  int32_t token = -1;
  float logprob = 0;              // as TokenLogprob
  std::vector<TokenLogprob> top;  // params.logprobs entries (or all above -inf), best first
};

// One request's sampler. The random number of step i depends on (seed, i) alone: what else runs
// in the engine changes nothing.   Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3"
class Sampler {
 public:
  // `params` have passed validate().
  Sampler(SamplingParams params, int32_t vocabulary_size);

  // Whether sample() is a plain argmax without log-probabilities, so that the caller may skip it.
  bool greedy_only() const;

  // logits [vocabulary]: scratch, changed. history: prompt and output so far. step: output index.
  // Fails with internal when a logit is NaN or +inf or all are -inf, numbers in the message.
  // Allocates nothing after the first step but what Pick::top holds.
  Result<Pick> sample(std::span<float> logits, std::span<const int32_t> history, int64_t step);

 private:
  bool changes_logits() const;
  void change_logits(std::span<float> logits, std::span<const int32_t> history);

  SamplingParams params_;
  int32_t vocabulary_size_;
  // Reused between steps.
  std::vector<Candidate> candidates_;
  std::vector<float> untouched_;  // the logits before bias and penalties
  std::vector<int32_t> counts_;   // of tokens in the history; zero between steps
};

// log softmax of one id, and its top-n, of untouched logits. NaN counts as -inf.
float logprob_of(std::span<const float> logits, int32_t token);
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int32_t count);

}  // namespace optima::sampling
