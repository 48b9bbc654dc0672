// Set algebra on sorted ranges; every result is normalised: no two ranges touch.
#include "sampling/grammar/code_points.h"

#include <algorithm>

namespace optima::sampling::grammar {
namespace {

constexpr uint32_t kSurrogateLow = 0xD800, kSurrogateHigh = 0xDFFF;

void append_without_surrogates(CodePointRange range, std::vector<CodePointRange>& out) {
  range.high = std::min(range.high, kCodePointMax);
  if (range.low > range.high) return;
  if (range.low < kSurrogateLow)
    out.push_back({range.low, std::min(range.high, kSurrogateLow - 1)});
  if (range.high > kSurrogateHigh)
    out.push_back({std::max(range.low, kSurrogateHigh + 1), range.high});
}

}  // namespace

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) {
  std::vector<CodePointRange> proper;
  for (const CodePointRange range : ranges) append_without_surrogates(range, proper);
  std::sort(proper.begin(), proper.end(),
            [](CodePointRange a, CodePointRange b) { return a.low < b.low; });
  for (const CodePointRange range : proper) {
    if (!ranges_.empty() && range.low <= ranges_.back().high + 1)
      ranges_.back().high = std::max(ranges_.back().high, range.high);
    else
      ranges_.push_back(range);
  }
}

bool CodePointSet::contains(uint32_t code_point) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), code_point,
                       [](uint32_t value, CodePointRange range) { return value < range.low; });
  return after != ranges_.begin() && code_point <= std::prev(after)->high;
}

CodePointSet CodePointSet::complement() const {
  std::vector<CodePointRange> gaps;
  uint32_t next = 0;
  for (const CodePointRange range : ranges_) {
    if (range.low > next) gaps.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kCodePointMax) gaps.push_back({next, kCodePointMax});
  return CodePointSet(std::move(gaps));
}

CodePointSet CodePointSet::united(const CodePointSet& other) const {
  std::vector<CodePointRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(both));
}

CodePointSet CodePointSet::intersected(const CodePointSet& other) const {
  std::vector<CodePointRange> common;
  auto a = ranges_.begin(), b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const uint32_t low = std::max(a->low, b->low), high = std::min(a->high, b->high);
    if (low <= high) common.push_back({low, high});
    if (a->high < b->high)
      ++a;
    else
      ++b;
  }
  return CodePointSet(std::move(common));
}

}  // namespace optima::sampling::grammar
