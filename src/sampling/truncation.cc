// Top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature, in this order: that of llama.cpp's
// default chain, in which the users of GGUF files state their settings. All but the last look at
// the model's own distribution, so that what counts as unlikely does not move with the temperature.
// (transformers and vLLM warp by the temperature first; with temperature 1 both orders are the
// same.)
//
// No stage sorts the vocabulary, and blocks of it whose largest logit is too small are passed over.
// Top-k keeps a buffer of 2k candidates and a threshold that rises each time it is full; it starts
// from the k-th largest of the blocks' maxima, which so many logits reach. Top-p drops beforehand
// all that is less likely than (1 - p) / vocabulary: together they are less than 1 - p, so the
// nucleus is complete without them; what is left, mostly a few hundred, is halved around its median
// until the border of the nucleus is found.
#include "sampling/truncation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sampling/dynamic_temperature.h"
#include "sampling/top_n_sigma.h"
#include "sampling/xtc.h"

namespace optima::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool partial(float p) {
  return p > 0 && p < 1;
}

bool limits_count(const Truncation& truncation, size_t vocabulary) {
  return truncation.top_k > 0 && static_cast<size_t>(truncation.top_k) < vocabulary;
}

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// A block at a time for the sake of vector code.
void weigh(const Passes& passes, Scale scale, std::span<Candidate> candidates) {
  std::array<float, kBlock> terms;
  while (!candidates.empty()) {
    const std::span<Candidate> block = candidates.first(std::min(kBlock, candidates.size()));
    candidates = candidates.subspan(block.size());
    for (size_t i = 0; i < block.size(); ++i) terms[i] = block[i].logit;
    passes.weights(terms.data(), static_cast<int64_t>(block.size()), scale.highest,
                   scale.temperature, terms.data());
    for (size_t i = 0; i < block.size(); ++i) block[i].weight = terms[i];
  }
}

// Calls visit(i) for the logits of all blocks whose maximum may_hold, or is not known.
template <typename MayHold, typename Visit>
void visit_blocks(std::span<const float> logits, const Survey& survey, const MayHold& may_hold,
                  const Visit& visit) {
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    if (!survey.maxima.empty() && !may_hold(survey.maxima[begin / kBlock])) continue;
    const size_t end = std::min(begin + kBlock, logits.size());
    for (size_t i = begin; i < end; ++i) visit(i);
  }
}

// All candidates of at least `floor`, in order of token.
void gather(std::span<const float> logits, const Survey& survey, float floor,
            std::vector<Candidate>& out) {
  out.clear();
  const float lowest = std::max(floor, std::numeric_limits<float>::lowest());
  const auto enough = [lowest](float logit) { return logit >= lowest; };
  visit_blocks(logits, survey, enough, [&](size_t i) {
    if (enough(logits[i])) out.push_back({static_cast<int32_t>(i), logits[i], 0});
  });
  weigh(*survey.passes, {survey.highest}, out);
}

// The largest float below the k-th largest of the maxima: at least k logits are above it. -inf
// where there are fewer maxima. `scratch` is used and left empty.
float top_threshold(std::span<const float> maxima, size_t k, std::vector<Candidate>& scratch) {
  if (maxima.size() < k) return -kInfinity;
  scratch.clear();
  for (const float maximum : maxima) scratch.push_back({0, maximum, 0});
  const auto last = scratch.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::nth_element(scratch.begin(), last, scratch.end(), more_likely);
  const float least = last->logit;
  scratch.clear();
  return std::nextafter(least, -kInfinity);
}

// Keeps the fewest candidates, the largest logits first, that have `target` mass together. Expected
// linear time: a half is either taken or dropped as a whole.
void keep_mass(double target, std::vector<Candidate>& candidates) {
  constexpr std::ptrdiff_t kSmall = 32;
  const auto begin = candidates.begin();
  auto low = begin, high = candidates.end();  // [begin, low) is kept, [high, end) is not
  double mass = 0;                            // of [begin, low)
  while (high - low > kSmall) {
    const auto middle = low + (high - low) / 2;
    std::nth_element(low, middle, high, more_likely);
    const double part = mass_of({low, middle});
    if (mass + part >= target) {
      high = middle;
    } else {
      mass += part;
      low = middle;
    }
  }
  std::sort(low, high, more_likely);
  while (low != high && mass < target) mass += (low++)->weight;
  const auto kept = std::max<std::ptrdiff_t>(low - begin, 1);
  candidates.resize(std::min(static_cast<size_t>(kept), candidates.size()), Candidate{});
}

// The logit below which no member of the nucleus lies; a little lower, for the rounding of floats.
float nucleus_floor(float top_p, double mass, float highest, size_t vocabulary) {
  const double least = (1.0 - static_cast<double>(top_p)) * mass / static_cast<double>(vocabulary);
  return highest + static_cast<float>(std::log(least)) - 0.01f;
}

}  // namespace

void gather_top(std::span<const float> logits, const Survey& survey, int32_t count,
                std::vector<Candidate>& out) {
  out.clear();
  const auto wanted = static_cast<size_t>(std::max(count, 0));
  if (wanted == 0) return;
  const auto cut = [&] {
    const auto last = out.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
    std::nth_element(out.begin(), last, out.end(), more_likely);
    out.resize(wanted, Candidate{});
    return last->logit;
  };
  // A later token must be larger than the last one kept: of equals the earlier stays.
  float threshold = top_threshold(survey.maxima, wanted, out);
  const auto above = [&threshold](float logit) { return logit > threshold; };
  visit_blocks(logits, survey, above, [&](size_t i) {
    if (!above(logits[i])) return;
    out.push_back({static_cast<int32_t>(i), logits[i], 0});
    if (out.size() == 2 * wanted) threshold = cut();
  });
  if (out.size() > wanted) cut();
  weigh(*survey.passes, {survey.highest}, out);
}

//   Meister et al. 2023, "Locally typical sampling"
void keep_typical(float typical_p, double mass, std::span<const float> logits,
                  std::vector<Candidate>& candidates) {
  if (candidates.empty()) return;
  // Weights are relative to the largest logit: ln(probability) = logit - highest - ln(mass).
  const double log_mass = std::log(mass);
  double highest = -kInfinity;
  for (const Candidate& candidate : candidates)
    highest = std::max<double>(highest, candidate.logit);
  double entropy = log_mass;
  for (const Candidate& candidate : candidates)
    entropy -= candidate.weight * (candidate.logit - highest) / mass;
  // For the selection, the distance from the typical surprise takes the logit's place.
  for (Candidate& candidate : candidates) {
    const double surprise = log_mass - (candidate.logit - highest);
    candidate.logit = -static_cast<float>(std::abs(surprise - entropy));
  }
  keep_mass(typical_p * mass, candidates);
  for (Candidate& candidate : candidates)
    candidate.logit = logits[static_cast<size_t>(candidate.token)];
}

//   Holtzman et al. 2020, "The curious case of neural text degeneration"
void keep_top_p(float top_p, double mass, std::vector<Candidate>& candidates) {
  keep_mass(top_p * mass, candidates);
}

//   Nguyen et al. 2024, "Turning up the heat: min-p sampling"
void keep_min_p(float min_p, std::vector<Candidate>& candidates) {
  float best = 0;
  for (const Candidate& candidate : candidates) best = std::max(best, candidate.weight);
  std::erase_if(candidates,
                [&](const Candidate& candidate) { return candidate.weight < min_p * best; });
}

namespace {

// The candidates before typical and the stages behind it; their mass, where a later stage needs it.
double first_candidates(const Truncation& truncation, std::span<const float> logits,
                        const Survey& survey, std::vector<Candidate>& out) {
  const float highest = survey.highest;
  const bool by_count = limits_count(truncation, logits.size());
  const bool by_typicality = partial(truncation.typical_p), by_mass = partial(truncation.top_p);
  double mass = 0;
  if (truncation.top_n_sigma > 0) {
    const float floor = top_n_sigma_floor(truncation.top_n_sigma, logits, highest);
    if (by_count) {
      gather_top(logits, survey, truncation.top_k, out);
      std::erase_if(out, [&](const Candidate& candidate) { return candidate.logit < floor; });
    } else {
      gather(logits, survey, floor, out);
    }
    mass = mass_of(out);
  } else if (by_count) {
    gather_top(logits, survey, truncation.top_k, out);
    mass = mass_of(out);
  } else if (by_mass && !by_typicality) {
    mass = survey.masses.empty() ? exp_sum(*survey.passes, logits, highest) : sum_of(survey.masses);
    gather(logits, survey, nucleus_floor(truncation.top_p, mass, highest, logits.size()), out);
  } else if (truncation.min_p > 0 && !by_typicality) {
    gather(logits, survey, highest + std::log(truncation.min_p) - 0.01f, out);
  } else {
    gather(logits, survey, -kInfinity, out);
    mass = mass_of(out);
  }
  return mass;
}

}  // namespace

bool keeps_all(const Truncation& truncation, size_t vocabulary) {
  return !limits_count(truncation, vocabulary) && !partial(truncation.typical_p) &&
         !partial(truncation.top_p) && truncation.min_p == 0 && truncation.top_n_sigma == 0 &&
         truncation.xtc_threshold == 0 && truncation.dynamic_range == 0;
}

void select_candidates(const Truncation& truncation, std::span<const float> logits, float highest,
                       std::vector<Candidate>& out) {
  Survey survey;
  survey.highest = highest;
  select_candidates(truncation, logits, survey, out);
}

void select_candidates(const Truncation& truncation, std::span<const float> logits,
                       const Survey& survey, std::vector<Candidate>& out) {
  double mass = first_candidates(truncation, logits, survey, out);
  if (partial(truncation.typical_p)) {
    keep_typical(truncation.typical_p, mass, logits, out);
    mass = mass_of(out);
  }
  if (partial(truncation.top_p)) keep_top_p(truncation.top_p, mass, out);
  if (truncation.min_p > 0) keep_min_p(truncation.min_p, out);
  if (truncation.xtc_threshold > 0) exclude_top_choices(truncation.xtc_threshold, out);

  const auto by_token = [](const Candidate& a, const Candidate& b) { return a.token < b.token; };
  if (!std::is_sorted(out.begin(), out.end(), by_token))
    std::sort(out.begin(), out.end(), by_token);
  float temperature = truncation.temperature;
  if (truncation.dynamic_range > 0)
    temperature = dynamic_temperature(
        {temperature, truncation.dynamic_range, truncation.dynamic_exponent}, out);
  if (temperature == 1) return;
  // Relative to the best that is left, so that its weight is 1 at any temperature.
  float best = -kInfinity;
  for (const Candidate& candidate : out) best = std::max(best, candidate.logit);
  weigh(*survey.passes, {best, std::max(temperature, kTemperatureLeast)}, out);
}

int32_t draw(std::span<const Candidate> candidates, double u) {
  const double target = u * mass_of(candidates);
  double mass = 0;
  int32_t last = -1;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight == 0) continue;
    mass += candidate.weight;
    last = candidate.token;
    if (target < mass) break;
  }
  return last;
}

}  // namespace optima::sampling
