// See pace.h. The size is scaled by wanted over measured time, a step at a time within bounds, so
// that one slow batch (a busy neighbour) neither ends nor floods the prompts.
#include "scheduler/pace.h"

#include <algorithm>

namespace optima::scheduler {
namespace {

constexpr int64_t kMeasureEvery = 64;  // batches with prompt tokens
constexpr double kScaleMin = 0.5, kScaleMax = 1.25;
constexpr double kAim = 0.9;     // of the bound: times scatter
constexpr double kSmooth = 0.3;  // weight of the newest measurement

}  // namespace

int64_t Pace::prompt_tokens(int64_t decodes) {
  if (decodes == 0) return limits_.tokens_max;
  const bool measured = decode_ns_ > 0 && decodes <= 2 * decodes_ && 2 * decodes >= decodes_;
  if (!measured || since_measured_ >= kMeasureEvery) return 0;
  return tokens_;
}

void Pace::observe(int64_t prompt_tokens, int64_t decodes, int64_t nanoseconds) {
  if (decodes == 0 || nanoseconds <= 0) return;
  const auto took = static_cast<double>(nanoseconds);
  if (prompt_tokens == 0) {
    const bool same = decodes == decodes_ && decode_ns_ > 0;
    decode_ns_ = same ? decode_ns_ + kSmooth * (took - decode_ns_) : took;
    decodes_ = decodes;
    since_measured_ = 0;
    return;
  }
  ++since_measured_;
  if (decode_ns_ <= 0) return;
  const double scale = std::clamp(limits_.stretch * kAim * decode_ns_ / took, kScaleMin, kScaleMax);
  const auto scaled = static_cast<double>(std::min(prompt_tokens, tokens_)) * scale;
  // Up by one at least, or a small size would never grow.
  const auto next = scale > 1 ? std::max(static_cast<int64_t>(scaled), prompt_tokens + 1)
                              : static_cast<int64_t>(scaled);
  tokens_ = std::clamp(next, limits_.tokens_min, limits_.tokens_max);
}

}  // namespace optima::scheduler
