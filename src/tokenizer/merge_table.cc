// A linked list of symbols and a heap of candidate pairs. A candidate goes stale when one of its
// symbols has grown or vanished; since symbols only grow, the pair that begins at `left` is the
// one that was meant exactly when both together still cover as much as they did.
#include "tokenizer/merge_table.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/text.h"

namespace optima::tokenizer {
namespace {

// For std::push_heap, which keeps the greatest on top.
bool later(const MergeTable::Scratch::Candidate& a, const MergeTable::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

Result<MergeTable> MergeTable::create(std::span<const std::string_view> merges,
                                      const Vocabulary& vocabulary) {
  MergeTable table;
  table.slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    // From 1: the left part has at least one character, and it may be a space.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      return Status(Code::format,
                    text("merge ", i, " of ", merges.size(), " ('", merge, "') has no two parts"));
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const Merge entry{vocabulary.find(left), vocabulary.find(right), static_cast<int32_t>(i),
                      vocabulary.find(joined)};
    if (entry.left < 0 || entry.right < 0 || entry.merged < 0) {
      return Status(Code::format,
                    text("merge ", i, " of ", merges.size(), " ('", merge,
                         "') names a token that the vocabulary of ", vocabulary.size(), " lacks"));
    }
    table.insert(entry, Equal::first_counts);
  }
  return table;
}

Result<MergeTable> MergeTable::create(std::span<const Pair> merges, size_t prefix_bytes,
                                      const Vocabulary& vocabulary) {
  MergeTable table;
  table.slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right] = merges[i];
    joined.assign(left).append(right.substr(std::min(prefix_bytes, right.size())));
    const Merge entry{vocabulary.find(left), vocabulary.find(right), static_cast<int32_t>(i),
                      vocabulary.find(joined)};
    if (entry.left < 0 || entry.right < 0 || entry.merged < 0) {
      return Status(Code::format,
                    text("merge ", i, " of ", merges.size(), " ('", left, "' and '", right,
                         "') names a token that the vocabulary of ", vocabulary.size(), " lacks"));
    }
    table.insert(entry, Equal::last_counts);
  }
  return table;
}

MergeTable MergeTable::create(std::span<const Merge> merges) {
  MergeTable table;
  table.slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  for (const Merge& merge : merges) table.insert(merge, Equal::first_counts);
  return table;
}

void MergeTable::merge(std::vector<int32_t>& ids, size_t first, Scratch& scratch) const {
  const auto count = static_cast<int32_t>(ids.size() - first);
  if (count < 2) return;
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  symbols.clear();
  scratch.heap.clear();
  for (int32_t i = 0; i < count; ++i) {
    symbols.push_back({ids[first + static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, 1});
  }
  for (int32_t i = 0; i + 1 < count; ++i) append_candidate(i, scratch);
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), later);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), later);
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Scratch::Symbol& left = symbols[static_cast<size_t>(best.left)];
    if (left.length == 0 || left.next < 0) continue;
    Scratch::Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (left.length + right.length != best.length) continue;
    left.id = best.merged;
    left.length = best.length;
    right.length = 0;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.left;
    for (const int32_t begin : {left.previous, best.left}) {
      if (begin < 0 || !append_candidate(begin, scratch)) continue;
      std::push_heap(scratch.heap.begin(), scratch.heap.end(), later);
    }
  }
  ids.resize(first);
  for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    ids.push_back(symbols[static_cast<size_t>(i)].id);
  }
}

size_t MergeTable::slot_of(int32_t left, int32_t right) const {
  const uint64_t key =
      (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  const size_t mask = slots_.size() - 1;
  // Fibonacci hashing: the high bits of the product depend on all bits of the key.
  size_t slot = ((key ^ (key >> 29)) * 0x9E3779B97F4A7C15u >> 24) & mask;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void MergeTable::insert(const Merge& merge, Equal equal) {
  Merge& slot = slots_[slot_of(merge.left, merge.right)];
  if (slot.left < 0 || equal == Equal::last_counts) slot = merge;
}

bool MergeTable::append_candidate(int32_t left, Scratch& scratch) const {
  const Scratch::Symbol& a = scratch.symbols[static_cast<size_t>(left)];
  if (a.next < 0) return false;
  const Scratch::Symbol& b = scratch.symbols[static_cast<size_t>(a.next)];
  const Merge& merge = slots_[slot_of(a.id, b.id)];
  if (merge.left < 0) return false;
  scratch.heap.push_back({merge.rank, left, a.length + b.length, merge.merged});
  return true;
}

}  // namespace optima::tokenizer
