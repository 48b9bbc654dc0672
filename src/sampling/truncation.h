// Which tokens may be drawn, and with what weight. Each stage only removes candidates; the order of
// the stages is fixed (truncation.cc says why).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/passes.h"

namespace optima::sampling {

struct Candidate {
  int32_t token;
  float logit;
  float weight;  // proportional to the probability
};

inline double mass_of(std::span<const Candidate> candidates) {
  double mass = 0;
  for (const Candidate& candidate : candidates) mass += candidate.weight;
  return mass;
}

// Of a dynamic temperature of 0, or nearly: all but the best weigh nothing, and nothing is divided
// by 0.
inline constexpr float kTemperatureLeast = 1e-20f;

// Off values: 0 for all but temperature, which must be above 0 here, and dynamic_exponent; 1 also
// turns top_p and typical_p off.
struct Truncation {
  int32_t top_k = 0;
  float typical_p = 0;
  float top_p = 0;
  float min_p = 0;
  float temperature = 1;
  float top_n_sigma = 0;
  float xtc_threshold = 0;  // of this step: whether XTC is done at all has been drawn
  float dynamic_range = 0;
  float dynamic_exponent = 1;
};

// Whether every token stays, at the one temperature: then there is nothing to select, and draw() of
// passes.h needs no candidates.
bool keeps_all(const Truncation& truncation, size_t vocabulary);

// The survivors in ascending order of token, weights at the temperature asked for. The largest
// logit is finite; no logit is NaN. Equal logits rank by token, the lower first, so that the
// result does not depend on how the selection is done. Linear in the vocabulary, plus sorting
// what survives; allocates nothing once `out` has room for the vocabulary.
void select_candidates(const Truncation& truncation, std::span<const float> logits,
                       const Survey& survey, std::vector<Candidate>& out);
// The same, knowing the largest logit alone.
void select_candidates(const Truncation& truncation, std::span<const float> logits, float highest,
                       std::vector<Candidate>& out);

// The `count` largest logits above -inf, unordered; weights relative to the highest.
void gather_top(std::span<const float> logits, const Survey& survey, int32_t count,
                std::vector<Candidate>& out);

// The stages, on candidates whose weights sum to a distribution of mass `mass` (which may be more
// than the sum of those given, when it is known that the rest cannot survive).
void keep_typical(float typical_p, double mass, std::span<const float> logits,
                  std::vector<Candidate>& candidates);
void keep_top_p(float top_p, double mass, std::vector<Candidate>& candidates);
void keep_min_p(float min_p, std::vector<Candidate>& candidates);

// The candidate at fraction `u` in [0, 1) of the total weight.
int32_t draw(std::span<const Candidate> candidates, double u);

}  // namespace optima::sampling
