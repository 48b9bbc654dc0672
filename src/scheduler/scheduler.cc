// The scheduling policy; see scheduler.h. Knows counts only: no tensors, no clock, no requests.
#include "scheduler/scheduler.h"

#include <algorithm>

namespace optima::scheduler {

namespace {

// A prompt of one token that runs whole waits its turn like any prompt: else a stream of such would
// keep a long one from ever finding a whole batch's room.
bool is_decode(const Candidate& candidate) {
  return candidate.pending_tokens == 1 && candidate.chunks == Chunks::any;
}

}  // namespace

void next(std::span<const Candidate> candidates, const Limits& limits, std::vector<Slot>& slots) {
  slots.clear();
  int64_t tokens_left = limits.tokens_max;
  const auto has_room = [&] {
    return tokens_left > 0 && static_cast<int64_t>(slots.size()) < limits.sequences_max;
  };
  for (size_t i = 0; i < candidates.size() && has_room(); ++i) {
    if (!is_decode(candidates[i])) continue;
    slots.push_back({i, 1});
    --tokens_left;
  }
  int64_t prompt_tokens_left = limits.prompt_tokens_max;
  for (size_t i = 0; i < candidates.size() && has_room(); ++i) {
    if (is_decode(candidates[i])) continue;
    const bool whole = candidates[i].chunks == Chunks::whole;
    const int64_t room = whole ? tokens_left : std::min(tokens_left, prompt_tokens_left);
    const int64_t tokens =
        std::min({candidates[i].pending_tokens, candidates[i].chunk_tokens_max, room});
    if (tokens <= 0) continue;
    if (whole && tokens < candidates[i].pending_tokens) continue;
    slots.push_back({i, tokens});
    tokens_left -= tokens;
    if (!whole) prompt_tokens_left -= tokens;
  }
}

}  // namespace optima::scheduler
