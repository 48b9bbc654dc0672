// Guesses at the tokens that come next, which one forward pass then checks: right ones cost no pass
// of their own. The check takes from each row the token that it would have taken anyway, so what is
// generated does not depend on the guesses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace optima::engine {

// What followed when the last tokens occurred before: the latest earlier place where as many of
// them as possible stand (at most kLookupMax, at least 1), up to `count` tokens from there. Empty
// when there is none. Prompt lookup decoding (Saxena 2023).
inline constexpr int64_t kDraftsMax = 32;  // of one pass and sequence
inline constexpr int64_t kLookupMax = 4;
std::vector<int32_t> lookup_drafts(std::span<const int32_t> tokens, int64_t count);

}  // namespace optima::engine
