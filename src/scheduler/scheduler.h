// Who runs next and how much: a pure decision over counts. Continuous batching (Yu et al. 2022,
// "Orca", OSDI '22) with chunked prefill (Agrawal et al. 2023, "Sarathi", arXiv:2308.16369):
// running decodes first, the rest of the token budget to prompts.
//
// - Decodes: all of them; when more than the batch holds, level by level those that have waited
//   longest. They leave one place for a prompt.
// - Prompts: level by level. Half of the budget is for the first in order, the other half for
//   prompts with less than half as much left as it has, shortest first; what remains is filled in
//   order. So a short prompt need not wait for a long one, and the first takes at most twice its
//   time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace optima::scheduler {

enum class Chunks : uint8_t {
  any,    // pending tokens may be computed piece by piece
  whole,  // all at once or not yet: each token sees all the others
};

// A request that could run.
struct Candidate {
  int64_t pending_tokens = 0;  // tokens whose KV is missing; 1 = decode
  int64_t chunk_tokens_max = 0;
  Chunks chunks = Chunks::any;
  int64_t level = 0;
  uint64_t ran_last = 0;  // number of the batch in which it ran last; 0 = never
};

struct Limits {
  int64_t tokens_max = 0;         // of one batch
  int64_t sequences_max = 0;      // of one batch
  int64_t prompt_tokens_max = 0;  // of them, tokens of prompts that may be cut
};

struct Slot {
  size_t candidate = 0;
  int64_t tokens = 0;
};

// `candidates`: in the order of comes_before(). Fills `slots` (cleared first), ordered as they lie
// in the batch. Not empty when a candidate has pending tokens and all limits are positive; a
// candidate that runs whole must fit in a chunk and a batch.
void next(std::span<const Candidate> candidates, const Limits& limits, std::vector<Slot>& slots);

}  // namespace optima::scheduler
