// The model's own log-probabilities, from logits that nothing has changed. The sum over the
// vocabulary is kept in double: in float, a quarter of a million small terms would be lost in it.
#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/passes.h"
#include "sampling/truncation.h"

namespace optima::sampling {

float logprob_from(float logit, double normaliser) {
  const double value = logit - normaliser;
  return std::isnan(value) ? -std::numeric_limits<float>::infinity() : static_cast<float>(value);
}

float logprob_of(std::span<const float> logits, int32_t token, const Passes& passes) {
  return logprob_from(logits[static_cast<size_t>(token)], log_sum_exp(passes, logits));
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, const Survey& survey,
                                       int32_t count, double normaliser) {
  std::vector<Candidate> candidates;
  const auto possible = static_cast<int32_t>(logits.size());
  gather_top(logits, survey, std::min(count, possible), candidates);
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  std::vector<TokenLogprob> top;
  top.reserve(candidates.size());
  for (const Candidate& candidate : candidates)
    top.push_back({candidate.token, logprob_from(candidate.logit, normaliser)});
  return top;
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int32_t count) {
  std::vector<float> maxima;
  const Survey survey = survey_of(kPlainPasses, logits, maxima);
  return top_logprobs(logits, survey, count, log_sum_exp(kPlainPasses, logits));
}

}  // namespace optima::sampling
