// See drafts.h.
#include "engine/drafts.h"

#include <algorithm>

namespace optima::engine {

std::vector<int32_t> lookup_drafts(std::span<const int32_t> tokens, int64_t count) {
  const auto size = static_cast<int64_t>(tokens.size());
  int64_t best_length = 0, best_end = 0;
  for (int64_t end = size - 1; end > 0 && best_length < kLookupMax; --end) {
    int64_t length = 0;
    while (length < kLookupMax && length < end &&
           tokens[static_cast<size_t>(end - 1 - length)] ==
               tokens[static_cast<size_t>(size - 1 - length)])
      ++length;
    if (length > best_length) {
      best_length = length;
      best_end = end;
    }
  }
  if (best_length == 0) return {};
  const auto from = tokens.subspan(static_cast<size_t>(best_end));
  const auto taken =
      from.first(static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(from.size()))));
  return {taken.begin(), taken.end()};
}

}  // namespace optima::engine
