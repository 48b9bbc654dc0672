// How far the text before each place agrees with its end is the Z-function of the text read
// backward (Gusfield 1997, section 1.4), computed for all places in one pass. A text that repeats
// one token a thousand times costs no more than another.
#include "sampling/dry.h"

#include <algorithm>
#include <cmath>

namespace optima::sampling {
namespace {

constexpr double kPenaltyMax = 1e30;

}  // namespace

void apply_dry(const Dry& dry, std::span<const int32_t> recent, std::vector<int32_t>& scratch,
               std::span<float> logits) {
  const auto is_breaker = [&](int32_t token) {
    return std::binary_search(dry.breakers.begin(), dry.breakers.end(), token);
  };
  const size_t count = recent.size();
  const auto backward = [&](size_t i) { return recent[count - 1 - i]; };
  // Tokens since the last breaker: no repetition is longer.
  size_t reach = 0;
  while (reach < count && !is_breaker(backward(reach))) ++reach;
  const auto allowed = static_cast<size_t>(std::max(dry.allowed, 1));
  if (count < 2 || reach < allowed) return;

  // [0, count): agreement; [count, count + vocabulary): the longest for each token, 0 = none.
  scratch.assign(count + logits.size(), 0);
  const std::span<int32_t> agreement = std::span(scratch).first(count);
  const std::span<int32_t> longest = std::span(scratch).subspan(count);
  size_t left = 0, right = 0;  // the stretch [left, right) agrees with the end
  for (size_t i = 1; i < count; ++i) {
    size_t length = 0;
    if (i < right) length = std::min(right - i, static_cast<size_t>(agreement[i - left]));
    while (i + length < count && backward(length) == backward(i + length)) ++length;
    if (i + length > right) left = i, right = i + length;
    agreement[i] = static_cast<int32_t>(length);
    const int32_t next = backward(i - 1);
    const auto repeated = static_cast<int32_t>(std::min(length, reach));
    if (next < 0 || static_cast<size_t>(next) >= logits.size() || is_breaker(next)) continue;
    int32_t& known = longest[static_cast<size_t>(next)];
    known = std::max(known, repeated);
  }
  for (const int32_t token : recent) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) continue;
    int32_t& length = longest[static_cast<size_t>(token)];
    if (static_cast<size_t>(length) >= allowed) {
      const double power = std::pow(static_cast<double>(dry.base),
                                    static_cast<double>(length) - static_cast<double>(allowed));
      const double penalty = std::min(dry.multiplier * power, kPenaltyMax);
      logits[static_cast<size_t>(token)] -= static_cast<float>(penalty);
    }
    length = 0;
  }
}

}  // namespace optima::sampling
