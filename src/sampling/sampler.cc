// The chain from logits to a token:
//   logit bias -> repetition, frequency, presence penalty (penalties.cc)
//   -> top-k -> typical -> top-p -> min-p -> temperature (truncation.cc) -> draw (rng.h)
// Temperature 0 takes the largest logit after bias and penalties, the first of equals; truncation
// cannot change that. Log-probabilities are those of the logits as they came in (logprobs.cc).
#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text.h"
#include "sampling/exponential.h"
#include "sampling/logprobs.h"
#include "sampling/penalties.h"
#include "sampling/rng.h"

namespace optima::sampling {
namespace {

constexpr float kFloatMax = std::numeric_limits<float>::max();

Status check_range(std::string_view field, float value, float low, float high) {
  if (value >= low && value <= high) return {};  // NaN is in no range
  return Status(Code::invalid_argument,
                text(field, " is ", value, ": must be a number from ", low, " to ", high));
}

Status check_count(std::string_view field, int32_t value, int32_t high) {
  if (value >= 0 && value <= high) return {};
  return Status(Code::invalid_argument, text(field, " is ", value, ": must be 0 to ", high),
                {value, -1, high});
}

Penalties penalties_of(const SamplingParams& params) {
  return {params.repetition_penalty, params.presence_penalty, params.frequency_penalty};
}

Truncation truncation_of(const SamplingParams& params) {
  return {params.top_k, params.typical_p, params.top_p, params.min_p, params.temperature};
}

Status check_logits(const Extent& extent, size_t vocabulary) {
  if (extent.nans > 0)
    return Status(Code::internal, text(extent.nans, " of ", vocabulary, " logits are NaN"));
  if (std::isfinite(extent.highest)) return {};
  return Status(Code::internal, extent.highest > 0 ? text("a logit of ", vocabulary, " is +inf")
                                                   : text("no token is possible: all ", vocabulary,
                                                          " logits are -inf"));
}

}  // namespace

Status validate(const SamplingParams& params, int32_t vocabulary_size) {
  constexpr int32_t kIntMax = std::numeric_limits<int32_t>::max();
  OPTIMA_TRY(check_range("temperature", params.temperature, 0, kFloatMax));
  OPTIMA_TRY(check_count("top_k", params.top_k, kIntMax));
  OPTIMA_TRY(check_range("top_p", params.top_p, 0, 1));
  OPTIMA_TRY(check_range("min_p", params.min_p, 0, 1));
  OPTIMA_TRY(check_range("typical_p", params.typical_p, 0, 1));
  OPTIMA_TRY(check_range("repetition_penalty", params.repetition_penalty, 0, kFloatMax));
  OPTIMA_TRY(check_range("presence_penalty", params.presence_penalty, -kFloatMax, kFloatMax));
  OPTIMA_TRY(check_range("frequency_penalty", params.frequency_penalty, -kFloatMax, kFloatMax));
  OPTIMA_TRY(check_count("penalty_window", params.penalty_window, kIntMax));
  OPTIMA_TRY(check_count("logprobs", params.logprobs, vocabulary_size));
  for (const auto& [token, bias] : params.logit_bias) {
    OPTIMA_TRY(check_count("a token of logit_bias", token, vocabulary_size - 1));
    if (bias == -std::numeric_limits<float>::infinity()) continue;
    OPTIMA_TRY(check_range(text("logit_bias of token ", token), bias, -kFloatMax, kFloatMax));
  }
  return {};
}

Sampler::Sampler(SamplingParams params, int32_t vocabulary_size)
    : params_(std::move(params)), vocabulary_size_(vocabulary_size) {
  const auto vocabulary = static_cast<size_t>(vocabulary_size);
  if (params_.temperature > 0) candidates_.reserve(vocabulary);
  if (changes_logits()) untouched_.reserve(vocabulary);
}

bool Sampler::changes_logits() const {
  return !params_.logit_bias.empty() || penalties_of(params_).any();
}

bool Sampler::greedy_only() const {
  return params_.temperature == 0 && params_.logprobs == 0 && !changes_logits();
}

Result<Pick> Sampler::sample(std::span<float> logits, std::span<const int32_t> history,
                             int64_t step) {
  if (logits.size() != static_cast<size_t>(vocabulary_size_))
    return Status(Code::internal, text(logits.size(), " logits for ", vocabulary_size_, " tokens"));
  Extent extent = extent_of(logits);
  OPTIMA_TRY(check_logits(extent, logits.size()));
  const double normaliser = extent.highest + std::log(exp_sum(logits, extent.highest));
  Pick pick;
  if (params_.logprobs > 0) pick.top = top_logprobs(logits, params_.logprobs, normaliser);

  std::span<const float> original = logits;
  if (changes_logits()) {
    untouched_.assign(logits.begin(), logits.end());
    original = untouched_;
    change_logits(logits, history);
    extent = extent_of(logits);
    Status status = check_logits(extent, logits.size());
    if (!status.ok()) return std::move(status).in("after bias and penalties");
  }
  if (params_.temperature == 0) {
    const auto first = std::find(logits.begin(), logits.end(), extent.highest);
    pick.token = static_cast<int32_t>(first - logits.begin());
  } else {
    select_candidates(truncation_of(params_), logits, extent.highest, candidates_);
    pick.token = draw(candidates_, uniform(params_.seed, static_cast<uint64_t>(step)));
  }
  pick.logprob = logprob_from(original[static_cast<size_t>(pick.token)], normaliser);
  return pick;
}

void Sampler::change_logits(std::span<float> logits, std::span<const int32_t> history) {
  apply_bias(params_.logit_bias, logits);
  const Penalties penalties = penalties_of(params_);
  if (!penalties.any()) return;
  const auto window = static_cast<size_t>(params_.penalty_window);
  if (window > 0 && window < history.size()) history = history.last(window);
  apply_penalties(penalties, history, counts_, logits);
}

}  // namespace optima::sampling
