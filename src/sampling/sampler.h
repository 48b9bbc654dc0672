// Logits -> token. The chain is fixed: logit bias; repetition, frequency, presence penalty; DRY;
// the host's hook; the grammar's mask; top-n-sigma, top-k, typical, top-p, min-p, XTC; temperature,
// fixed or dynamic; draw (why this order: truncation.cc). With mirostat the temperature comes right
// after the mask, then mirostat in place of all truncation. Each stage is a pure function in its
// own file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sampling/grammar/token_table.h"
#include "sampling/passes.h"
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

  // Those that need a temperature above 0:
  float top_n_sigma = 0;       // 0 = off
  float xtc_probability = 0;   // of a step; 0 = off
  float xtc_threshold = 0;     // 0 = 0.1
  float mirostat_tau = 0;      // wanted surprise in bits; 0 = off; not with any truncation or XTC
  float mirostat_eta = 0;      // 0 = 0.1
  float dynamic_range = 0;     // temperature from temperature - range to + range; 0 = off
  float dynamic_exponent = 0;  // 0 = 1

  float dry_multiplier = 0;                // 0 = off
  float dry_base = 0;                      // 0 = 1.75
  int32_t dry_allowed_length = 0;          // 0 = 2
  int32_t dry_window = 0;                  // last tokens looked at; 0 = all
  std::vector<int32_t> dry_breakers = {};  // tokens that end a repetition
};

// Changes the logits of a step before truncation: for hosts that bring a constraint of their own.
// `tokens` are the prompt and the output so far. A failure ends the request with that status. A
// token is banned by -inf; NaN or +inf fail the step.
using LogitsHook = std::function<Status(std::span<float> logits, std::span<const int32_t> tokens)>;

// What restricts a step from outside. The mask is applied last: the hook cannot lift it.
struct StepLimits {
  const LogitsHook* hook = nullptr;
  const TokenMask* mask = nullptr;  // of the vocabulary's size
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

// One request's sampler. The random numbers of step i depend on (seed, i) alone: what else runs
// in the engine changes nothing.   Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3"
class Sampler {
 public:
  // `params` have passed validate().
  Sampler(SamplingParams params, int32_t vocabulary_size, const Passes& passes = kPlainPasses);

  // Whether sample() is a plain argmax without log-probabilities, so that the caller may skip it.
  bool greedy_only() const;

  // logits [vocabulary]: scratch, changed. history: prompt and output so far. step: output index.
  // Fails with internal when a logit is NaN or +inf or all are -inf, numbers in the message; with
  // invalid_state when hook and mask leave no token.
  // Allocates nothing after the first step but what Pick::top holds, and for DRY as the history
  // grows.
  Result<Pick> sample(std::span<float> logits, std::span<const int32_t> history, int64_t step,
                      const StepLimits& limits = {});

 private:
  bool changes_logits() const;
  Status change_logits(std::span<float> logits, std::span<const int32_t> history,
                       const StepLimits& limits);
  int32_t draw_token(std::span<const float> logits, const Survey& survey, uint64_t step);

  SamplingParams params_;
  int32_t vocabulary_size_;
  Passes passes_;
  // Reused between steps.
  std::vector<float> maxima_;   // of the blocks of logits
  std::vector<double> masses_;  // of the same
  std::vector<Candidate> candidates_;
  std::vector<float> untouched_;  // the logits before bias and penalties
  std::vector<int32_t> counts_;   // of tokens in the history; zero between steps
  std::vector<int32_t> dry_scratch_;
  float mirostat_limit_ = 0;  // the one thing a step leaves for the next
};

// log softmax of one id, and its top-n, of untouched logits. NaN counts as -inf.
float logprob_of(std::span<const float> logits, int32_t token, const Passes& passes = kPlainPasses);
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int32_t count);

}  // namespace optima::sampling
