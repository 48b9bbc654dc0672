// A mask is the union over the stacks of a set. Of one stack, what its top state reads by itself
// does not depend on what lies below: that part is walked through the trie of tokens once, on a
// stack whose bottom is a hole, and noted together with the nodes where the hole shows. With what
// really lies below only the subtrees of those nodes are walked: in a string that is what follows a
// quotation mark, a few hundred nodes instead of all.
//
// Counted repetitions on top of the stack belong to the top. Their counts are cut to "many" there:
// a token of n bytes cannot tell n from more, since a pass reads a byte at least. The few tokens
// that are longer than the count are decided one by one.
#include "sampling/grammar/masks.h"

#include <algorithm>

#include "base/text.h"

namespace optima::sampling::grammar {
namespace {

constexpr int64_t kMany = 24;
constexpr size_t kRepeatsOnTop = 4;

int64_t cut(int64_t count, int64_t& exact_up_to) {
  if (count == kUnlimited || count < kMany) return count;
  exact_up_to = std::min(exact_up_to, count);
  return kUnlimited;
}

}  // namespace

void Masks::walk(uint32_t root, SetId set, TokenMask& mask, std::vector<uint32_t>* leaves) {
  const std::vector<TokenTable::Node>& nodes = tokens_.nodes();
  const uint32_t end = nodes[root].subtree_end;
  path_.resize(static_cast<size_t>(tokens_.longest()) + 1);
  path_[nodes[root].depth] = set;
  for (uint32_t i = root + 1; i < end;) {
    const TokenTable::Node& node = nodes[i];
    const SetId next = stacks_.step(path_[node.depth - 1u], node.byte);
    if (next == 0) {
      if (!stacks_.status().ok()) return;
      i = node.subtree_end;
      continue;
    }
    if (leaves != nullptr && stacks_.has_hole(next)) {
      leaves->push_back(i);
      if (stacks_.entries(next).size() == 1) {
        i = node.subtree_end;
        continue;
      }
    }
    for (const int32_t token : tokens_.tokens_at(i)) mask.allow(token);
    path_[node.depth] = next;
    ++i;
  }
}

const Masks::Local& Masks::local(SetId top) {
  const auto known = locals_.find(top);
  if (known != locals_.end()) return known->second;
  Local local{empty_mask(), {}};
  walk(0, top, local.mask, &local.leaves);
  memory_ += static_cast<int64_t>(local.mask.words.size() * sizeof(uint64_t) +
                                  local.leaves.size() * sizeof(uint32_t) + sizeof(Local));
  return locals_.emplace(top, std::move(local)).first->second;
}

void Masks::add_entry(const Entry& entry, TokenMask& mask, int64_t& exact_up_to) {
  std::vector<FrameId> repeats;
  SetId below = entry.rest;
  while (repeats.size() < kRepeatsOnTop && stacks_.entries(below).size() == 1) {
    const Entry next = stacks_.entries(below)[0];
    if (next.frame <= stacks_.hole()) break;
    Frame frame = stacks_.frame(next.frame);
    if (frame.kind != Frame::Kind::repeat) break;
    frame.low = cut(frame.low, exact_up_to);
    frame.high = cut(frame.high, exact_up_to);
    repeats.push_back(stacks_.intern(frame));
    below = next.rest;
  }
  SetId top = stacks_.single(stacks_.hole(), 0);
  for (auto frame = repeats.rbegin(); frame != repeats.rend(); ++frame)
    top = stacks_.single(*frame, top);
  const Local& known = local(stacks_.single(entry.frame, top));
  for (size_t i = 0; i < mask.words.size(); ++i) mask.words[i] |= known.mask.words[i];
  if (known.leaves.empty()) return;
  const SetId after = stacks_.resume(below);
  for (const uint32_t leaf : known.leaves) {
    if (!stacks_.status().ok()) return;
    for (const int32_t token : tokens_.tokens_at(leaf)) mask.allow(token);
    walk(leaf, after, mask, nullptr);
  }
}

bool Masks::reads(SetId set, int32_t token) {
  for (const char byte : tokens_.bytes(token)) {
    set = stacks_.step(set, static_cast<uint8_t>(byte));
    if (set == 0) return false;
  }
  return true;
}

Result<std::shared_ptr<const TokenMask>> Masks::of(SetId set) {
  const auto known = masks_.find(set);
  if (known != masks_.end()) return known->second;
  auto mask = std::make_shared<TokenMask>(empty_mask());
  int64_t exact_up_to = kUnlimited;
  stacks_.set_budget(limits_.mask_work);
  const std::span<const Entry> span = stacks_.entries(set);
  for (const Entry& entry : std::vector<Entry>(span.begin(), span.end())) {
    if (entry.frame == stacks_.bottom()) {
      for (const int32_t token : tokens_.ends()) mask->allow(token);
      continue;
    }
    add_entry(entry, *mask, exact_up_to);
    if (!stacks_.status().ok()) break;
  }
  for (const int32_t token : tokens_.by_length()) {
    if (static_cast<int64_t>(tokens_.bytes(token).size()) <= exact_up_to) break;
    if (!stacks_.status().ok()) break;
    if (reads(set, token))
      mask->allow(token);
    else
      mask->forbid(token);
  }
  stacks_.set_budget(kUnlimited);
  if (!stacks_.status().ok()) {
    Status status = stacks_.status();
    stacks_.clear_status();
    locals_.clear();  // one of them may be cut short
    return status;
  }
  memory_ += static_cast<int64_t>(mask->words.size() * sizeof(uint64_t) + sizeof(TokenMask));
  masks_.emplace(set, mask);
  return std::shared_ptr<const TokenMask>(std::move(mask));
}

}  // namespace optima::sampling::grammar
