// The five behaviours of a split. Empty cuts count while neighbours are merged and vanish after.
#include "tokenizer/hf/pieces.h"

#include <algorithm>

namespace optima::tokenizer::hf {
namespace {

// Merges each match that follows no match into its predecessor.
void merge_with_previous(std::vector<Cut>& cuts) {
  size_t kept = 0;
  uint8_t previous = 0;
  for (const Cut& cut : cuts) {
    if (cut.is_match != 0 && previous == 0 && kept > 0) {
      cuts[kept - 1].range.end = cut.range.end;
    } else {
      cuts[kept++] = cut;
    }
    previous = cut.is_match;
  }
  cuts.resize(kept);
}

void merge_with_next(std::vector<Cut>& cuts) {
  size_t first = cuts.size();  // cuts[first, end) are done
  uint8_t previous = 0;
  for (size_t i = cuts.size(); i-- > 0;) {
    const Cut cut = cuts[i];
    if (cut.is_match != 0 && previous == 0 && first < cuts.size()) {
      cuts[first].range.begin = cut.range.begin;
    } else {
      cuts[--first] = cut;
    }
    previous = cut.is_match;
  }
  cuts.erase(cuts.begin(), cuts.begin() + static_cast<ptrdiff_t>(first));
}

void merge_alike(std::vector<Cut>& cuts) {
  size_t kept = 0;
  uint8_t previous = 0;
  for (const Cut& cut : cuts) {
    if (cut.is_match == previous && kept > 0) {
      cuts[kept - 1].range.end = cut.range.end;
    } else {
      cuts[kept++] = cut;
    }
    previous = cut.is_match;
  }
  cuts.resize(kept);
}

}  // namespace

void cuts_of(const std::vector<Range>& matches, size_t bytes, std::vector<Cut>& cuts) {
  cuts.clear();
  size_t at = 0;
  for (const Range& match : matches) {
    if (match.begin != at) cuts.push_back({{at, match.begin}, 0});
    cuts.push_back({match, 1});
    at = match.end;
  }
  if (at != bytes) cuts.push_back({{at, bytes}, 0});
}

void append_pieces(const Piece& piece, std::vector<Cut>& cuts, SplitBehavior behavior,
                   std::vector<Piece>& out) {
  switch (behavior) {
    case SplitBehavior::removed:
      std::erase_if(cuts, [](const Cut& cut) { return cut.is_match != 0; });
      break;
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::merged_with_previous:
      merge_with_previous(cuts);
      break;
    case SplitBehavior::merged_with_next:
      merge_with_next(cuts);
      break;
    case SplitBehavior::contiguous:
      merge_alike(cuts);
      break;
  }
  for (const Cut& cut : cuts) {
    if (cut.range.begin == cut.range.end) continue;
    const Start start = cut.range.begin == 0 ? piece.start : Start::inside;
    out.push_back({piece.begin + cut.range.begin, piece.begin + cut.range.end, start});
  }
}

}  // namespace optima::tokenizer::hf
