// Who runs next and how much: a pure decision over counts. Continuous batching (Yu et al. 2022,
// "Orca", OSDI '22) with chunked prefill (Agrawal et al. 2023, "Sarathi", arXiv:2308.16369):
// running decodes first, the rest of the token budget to prompts in order of arrival.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace optima::scheduler {

enum class Chunks : uint8_t {
  any,    // pending tokens may be computed piece by piece
  whole,  // all at once or not yet: each token sees all the others
};

// A request that could run, in order of arrival.
struct Candidate {
  int64_t pending_tokens = 0;  // tokens whose KV is missing; 1 = decode
  int64_t chunk_tokens_max = 0;
  Chunks chunks = Chunks::any;
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

// Fills `slots` (cleared first), ordered as they lie in the batch. Not empty when a candidate has
// pending tokens and both limits are positive; a candidate that runs whole must fit in a chunk and
// a batch.
void next(std::span<const Candidate> candidates, const Limits& limits, std::vector<Slot>& slots);

}  // namespace optima::scheduler
