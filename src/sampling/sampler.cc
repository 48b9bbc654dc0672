// The chain from logits to a token:
//   logit bias -> repetition, frequency, presence penalty (penalties.cc) -> DRY (dry.cc)
//   -> hook of the host -> mask of the grammar
//   -> top-n-sigma -> top-k -> typical -> top-p -> min-p -> XTC -> temperature (truncation.cc)
//   -> draw (rng.h)
// or, with mirostat, temperature -> mirostat.cc -> draw. Temperature 0 takes the largest logit
// after the mask, the first of equals: truncation could not change that, and what could (XTC,
// mirostat, a dynamic temperature) is refused with it. Log-probabilities are those of the logits as
// they came in (logprobs.cc).
#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text.h"
#include "sampling/dry.h"
#include "sampling/logprobs.h"
#include "sampling/mirostat.h"
#include "sampling/penalties.h"
#include "sampling/rng.h"

namespace optima::sampling {
namespace {

constexpr float kFloatMax = std::numeric_limits<float>::max();
// The values of their papers and announcements, for fields that are 0.
constexpr float kXtcThreshold = 0.1f, kMirostatRate = 0.1f, kDryBase = 1.75f;
constexpr int32_t kDryAllowedLength = 2;

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

// Streams of random numbers.
constexpr uint32_t kDrawStream = 0, kXtcStream = 1;

float value_or(float value, float natural) {
  return value == 0 ? natural : value;
}

Truncation truncation_of(const SamplingParams& params, uint64_t step) {
  Truncation truncation{params.top_k, params.typical_p, params.top_p, params.min_p,
                        params.temperature};
  truncation.top_n_sigma = params.top_n_sigma;
  if (params.xtc_probability > 0 && uniform(params.seed, step, kXtcStream) < params.xtc_probability)
    truncation.xtc_threshold = value_or(params.xtc_threshold, kXtcThreshold);
  truncation.dynamic_range = params.dynamic_range;
  truncation.dynamic_exponent = value_or(params.dynamic_exponent, 1);
  return truncation;
}

Dry dry_of(const SamplingParams& params) {
  return {params.dry_multiplier, value_or(params.dry_base, kDryBase),
          params.dry_allowed_length == 0 ? kDryAllowedLength : params.dry_allowed_length,
          params.dry_breakers};
}

// Fields that need a temperature, and mirostat, which takes the place of truncation.
Status check_combinations(const SamplingParams& params) {
  const std::pair<std::string_view, float> warm[] = {{"xtc_probability", params.xtc_probability},
                                                     {"mirostat_tau", params.mirostat_tau},
                                                     {"dynamic_range", params.dynamic_range}};
  for (const auto& [field, value] : warm)
    if (value > 0 && params.temperature == 0)
      return {Code::invalid_argument,
              text(field, " is ", value, ": it needs a temperature above 0")};
  if (params.mirostat_tau == 0) return {};
  const std::pair<std::string_view, bool> others[] = {
      {"top_k", params.top_k > 0},
      {"top_p", params.top_p > 0 && params.top_p < 1},
      {"min_p", params.min_p > 0},
      {"typical_p", params.typical_p > 0 && params.typical_p < 1},
      {"top_n_sigma", params.top_n_sigma > 0},
      {"xtc_probability", params.xtc_probability > 0},
      {"dynamic_range", params.dynamic_range > 0}};
  for (const auto& [field, is_on] : others)
    if (is_on)
      return {Code::invalid_argument,
              text("mirostat_tau is ", params.mirostat_tau, ": ", field, " must be off with it")};
  return {};
}

Status check_newer(const SamplingParams& params, int32_t vocabulary_size) {
  constexpr int32_t kIntMax = std::numeric_limits<int32_t>::max();
  OPTIMA_TRY(check_range("top_n_sigma", params.top_n_sigma, 0, kFloatMax));
  OPTIMA_TRY(check_range("xtc_probability", params.xtc_probability, 0, 1));
  OPTIMA_TRY(check_range("xtc_threshold", params.xtc_threshold, 0, 1));
  OPTIMA_TRY(check_range("mirostat_tau", params.mirostat_tau, 0, kFloatMax));
  OPTIMA_TRY(check_range("mirostat_eta", params.mirostat_eta, 0, 1));
  OPTIMA_TRY(check_range("dynamic_range", params.dynamic_range, 0, kFloatMax));
  OPTIMA_TRY(check_range("dynamic_exponent", params.dynamic_exponent, 0, kFloatMax));
  OPTIMA_TRY(check_range("dry_multiplier", params.dry_multiplier, 0, kFloatMax));
  if (params.dry_base != 0) OPTIMA_TRY(check_range("dry_base", params.dry_base, 1, kFloatMax));
  OPTIMA_TRY(check_count("dry_allowed_length", params.dry_allowed_length, kIntMax));
  OPTIMA_TRY(check_count("dry_window", params.dry_window, kIntMax));
  for (const int32_t token : params.dry_breakers)
    OPTIMA_TRY(check_count("a token of dry_breakers", token, vocabulary_size - 1));
  return check_combinations(params);
}

Status check_logits(const Survey& survey, size_t vocabulary) {
  if (survey.nans > 0)
    return Status(Code::internal, text(survey.nans, " of ", vocabulary, " logits are NaN"));
  if (std::isfinite(survey.highest)) return {};
  return Status(Code::internal, survey.highest > 0 ? text("a logit of ", vocabulary, " is +inf")
                                                   : text("no token is possible: all ", vocabulary,
                                                          " logits are -inf"));
}

// The first place of the largest logit.
int32_t first_of(std::span<const float> logits, const Survey& survey) {
  const auto block = std::find(survey.maxima.begin(), survey.maxima.end(), survey.highest);
  const auto begin = logits.begin() + (block - survey.maxima.begin()) * kBlock;
  return static_cast<int32_t>(std::find(begin, logits.end(), survey.highest) - logits.begin());
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
  return check_newer(params, vocabulary_size);
}

Sampler::Sampler(SamplingParams params, int32_t vocabulary_size, const Passes& passes)
    : params_(std::move(params)), vocabulary_size_(vocabulary_size), passes_(passes) {
  const auto vocabulary = static_cast<size_t>(vocabulary_size);
  if (params_.temperature > 0) candidates_.reserve(vocabulary);
  if (changes_logits()) untouched_.reserve(vocabulary);
  std::sort(params_.dry_breakers.begin(), params_.dry_breakers.end());
  mirostat_limit_ = 2 * params_.mirostat_tau;
}

bool Sampler::changes_logits() const {
  return !params_.logit_bias.empty() || penalties_of(params_).any() || params_.dry_multiplier > 0;
}

bool Sampler::greedy_only() const {
  return params_.temperature == 0 && params_.logprobs == 0 && !changes_logits();
}

Result<Pick> Sampler::sample(std::span<float> logits, std::span<const int32_t> history,
                             int64_t step, const StepLimits& limits) {
  if (logits.size() != static_cast<size_t>(vocabulary_size_))
    return Status(Code::internal, text(logits.size(), " logits for ", vocabulary_size_, " tokens"));
  Survey survey = survey_of(passes_, logits, maxima_);
  OPTIMA_TRY(check_logits(survey, logits.size()));
  const double mass = block_masses(passes_, logits, {survey.highest}, masses_);
  const double normaliser = survey.highest + std::log(mass);
  survey.masses = masses_;
  Pick pick;
  if (params_.logprobs > 0) pick.top = top_logprobs(logits, survey, params_.logprobs, normaliser);

  std::span<const float> original = logits;
  const bool limited = limits.hook != nullptr || limits.mask != nullptr;
  if (changes_logits() || limited) {
    untouched_.assign(logits.begin(), logits.end());
    original = untouched_;
    OPTIMA_TRY(change_logits(logits, history, limits));
    survey = survey_of(passes_, logits, maxima_);
    if (limited && survey.nans == 0 && survey.highest == -std::numeric_limits<float>::infinity())
      return Status(Code::invalid_state, text("the hook and the grammar leave none of ",
                                              logits.size(), " tokens possible"));
    Status status = check_logits(survey, logits.size());
    if (!status.ok())
      return std::move(status).in(limits.hook != nullptr ? "after bias, penalties and hook"
                                                         : "after bias and penalties");
  }
  if (params_.temperature == 0) {
    pick.token = first_of(logits, survey);
  } else {
    pick.token = draw_token(logits, survey, static_cast<uint64_t>(step));
  }
  pick.logprob = logprob_from(original[static_cast<size_t>(pick.token)], normaliser);
  return pick;
}

Status Sampler::change_logits(std::span<float> logits, std::span<const int32_t> history,
                              const StepLimits& limits) {
  apply_bias(params_.logit_bias, logits);
  const auto last = [&](int32_t window) {
    const auto count = static_cast<size_t>(window);
    return count > 0 && count < history.size() ? history.last(count) : history;
  };
  const Penalties penalties = penalties_of(params_);
  if (penalties.any()) apply_penalties(penalties, last(params_.penalty_window), counts_, logits);
  if (params_.dry_multiplier > 0)
    apply_dry(dry_of(params_), last(params_.dry_window), dry_scratch_, logits);
  if (limits.hook != nullptr) OPTIMA_TRY((*limits.hook)(logits, history));
  if (limits.mask != nullptr) limits.mask->apply(logits);
  return {};
}

int32_t Sampler::draw_token(std::span<const float> logits, const Survey& survey, uint64_t step) {
  const double u = uniform(params_.seed, step, kDrawStream);
  const Truncation truncation = truncation_of(params_, step);
  if (params_.mirostat_tau == 0 && keeps_all(truncation, logits.size())) {
    const Scale scale{survey.highest, std::max(params_.temperature, kTemperatureLeast)};
    if (scale.temperature != 1 || survey.masses.empty())
      block_masses(passes_, logits, scale, masses_);
    return draw(passes_, logits, scale, masses_, u);
  }
  select_candidates(truncation, logits, survey, candidates_);
  if (params_.mirostat_tau == 0) return draw(candidates_, u);
  const Mirostat mirostat{params_.mirostat_tau, value_or(params_.mirostat_eta, kMirostatRate),
                          mirostat_limit_};
  keep_unsurprising(mirostat.limit, candidates_);
  const int32_t token = draw(candidates_, u);
  mirostat_limit_ = next_limit(mirostat, candidates_, token);
  return token;
}

}  // namespace optima::sampling
