// The scheduling policy; see scheduler.h. Knows counts only: no tensors, no clock, no requests.
#include "scheduler/scheduler.h"

#include <algorithm>

namespace optima::scheduler {

void next(std::span<const Candidate> candidates, const Limits& limits, std::vector<Slot>& slots) {
  slots.clear();
  int64_t tokens_left = limits.tokens_max;
  const auto has_room = [&] {
    return tokens_left > 0 && static_cast<int64_t>(slots.size()) < limits.sequences_max;
  };
  for (size_t i = 0; i < candidates.size() && has_room(); ++i) {
    if (candidates[i].pending_tokens != 1) continue;
    slots.push_back({i, 1});
    --tokens_left;
  }
  for (size_t i = 0; i < candidates.size() && has_room(); ++i) {
    if (candidates[i].pending_tokens <= 1) continue;
    const int64_t tokens =
        std::min({candidates[i].pending_tokens, candidates[i].chunk_tokens_max, tokens_left});
    if (tokens <= 0) continue;
    slots.push_back({i, tokens});
    tokens_left -= tokens;
  }
}

}  // namespace optima::scheduler
