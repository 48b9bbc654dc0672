// The index is a tree kept in a map: a block names its parent and counts its children, so that a
// block whose own pages are gone stays known while one after it has pages, and a walk from the root
// can compare every token on the way.
#include "kv/prefix_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace optima::kv {
namespace {

using Tokens = std::span<const int32_t, kPageTokens>;

Tokens block_of(std::span<const int32_t> prefix, size_t index) {
  return Tokens(prefix.subspan(index * kPageTokens, kPageTokens));
}

bool is_block(const PrefixIndex::Block& block, BlockHash parent, Tokens tokens) {
  return block.parent == parent && std::ranges::equal(block.tokens, tokens);
}

}  // namespace

BlockHash block_hash(BlockHash parent, Tokens tokens) {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), parent);
}

const PrefixIndex::Block* PrefixIndex::find(BlockHash parent, Tokens tokens) const {
  const auto at = blocks_.find(block_hash(parent, tokens));
  return at != blocks_.end() && is_block(at->second, parent, tokens) ? &at->second : nullptr;
}

// From the root on, so that every block of the chain is compared: a hash may stand for other tokens
// anywhere in it.
PrefixIndex::Block* PrefixIndex::insert(BlockHash root, std::span<const int32_t> prefix,
                                        std::span<const BlockHash> hashes) {
  Block* parent = nullptr;
  const auto at_root = roots_.try_emplace(root, 0).first;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const BlockHash before = i == 0 ? root : hashes[i - 1];
    const auto [at, inserted] = blocks_.try_emplace(hashes[i]);
    Block& block = at->second;
    if (!inserted && !is_block(block, before, block_of(prefix, i))) {
      if (i > 0) forget_unused(before);
      if (i == 0 && at_root->second == 0) roots_.erase(at_root);
      return nullptr;
    }
    if (inserted) {
      block.parent = before;
      block.first = i == 0;
      std::ranges::copy(block_of(prefix, i), block.tokens.begin());
      if (parent != nullptr) ++parent->children;
      if (block.first) ++at_root->second;
    }
    parent = &block;
  }
  return parent;
}

bool PrefixIndex::known_elsewhere(BlockHash root, Tokens tokens) const {
  return std::any_of(roots_.begin(), roots_.end(), [&](const auto& other) {
    return other.first != root && find(other.first, tokens) != nullptr;
  });
}

void PrefixIndex::remove_page(BlockHash hash, size_t group) {
  blocks_.find(hash)->second.pages[group] = {};
  forget_unused(hash);
}

void PrefixIndex::forget_unused(BlockHash hash) {
  for (auto at = blocks_.find(hash); at != blocks_.end();) {
    const Block& block = at->second;
    const bool has_page =
        std::any_of(block.pages.begin(), block.pages.end(), [](PageId page) { return bool(page); });
    if (has_page || block.children > 0) return;
    const BlockHash parent = block.parent;
    if (block.first) {
      const auto root = roots_.find(parent);
      if (--root->second == 0) roots_.erase(root);
      blocks_.erase(at);
      return;
    }
    blocks_.erase(at);
    at = blocks_.find(parent);
    if (at != blocks_.end()) --at->second.children;
  }
}

}  // namespace optima::kv
