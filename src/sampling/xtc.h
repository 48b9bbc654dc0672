// Exclude top choices: of several tokens that are all likely enough, all but the least likely go.
//   P. E. Weidmann 2024, "Exclude Top Choices (XTC)", text-generation-webui, pull request 6335
#pragma once

#include <vector>

#include "sampling/truncation.h"

namespace optima::sampling {

// Of the candidates of at least `threshold` probability (among those given), removes all but the
// one of least probability; of equals the one with the higher token stays. Whether it is done at a
// step at all is drawn by the caller. Candidates have weights at temperature 1.
void exclude_top_choices(float threshold, std::vector<Candidate>& candidates);

}  // namespace optima::sampling
