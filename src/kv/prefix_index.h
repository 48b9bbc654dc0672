// Which pages hold the keys and values of which tokens. A block is kPageTokens tokens after a given
// prefix; it is known by the block before it and by its own tokens, which are compared: a hash
// leads to a block, it never proves one. For each KV group a block may have a page.
//
// Chained block hashes after vLLM's prefix caching (Kwon et al. 2023, arXiv:2309.06180).
// Plain data without a lock: the page pool owns it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace optima::kv {

inline constexpr int64_t kPageTokens = 16;

// Of a block and all tokens before it, and of the root that they start from: sequences whose keys
// and values differ for the same tokens start from different roots.
using BlockHash = uint64_t;

// A page of the pool.
struct PageId {
  int32_t size_class = -1;
  int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const PageId&) const = default;
};

BlockHash block_hash(BlockHash parent, std::span<const int32_t, kPageTokens> tokens);

class PrefixIndex {
 public:
  struct Block {
    BlockHash parent = 0;
    std::array<int32_t, kPageTokens> tokens{};
    int32_t children = 0;
    bool first = false;         // after no other block: its parent is a root
    std::vector<PageId> pages;  // by group; may be shorter
    PageId page(size_t group) const { return group < pages.size() ? pages[group] : PageId{}; }
  };

  // The block of these tokens after `parent`; null when it is not known.
  const Block* find(BlockHash parent, std::span<const int32_t, kPageTokens> tokens) const;
  // Makes the last block of `prefix` (whole blocks, at least one) known, and those before it where
  // they are not; hashes[i] is block i's. Null when a hash belongs to other tokens: then nothing
  // can be kept for them. May throw bad_alloc, and is then as before but for blocks without pages.
  Block* insert(BlockHash root, std::span<const int32_t> prefix, std::span<const BlockHash> hashes);
  // The page of a block and group is gone. Blocks that nothing hangs on are forgotten.
  void remove_page(BlockHash hash, size_t group);

  size_t blocks() const { return blocks_.size(); }
  size_t roots() const { return roots_.size(); }  // that blocks start from
  const Block& at(BlockHash hash) const { return blocks_.find(hash)->second; }
  // Whether a first block of these tokens is known from another root than this one.
  bool known_elsewhere(BlockHash root, std::span<const int32_t, kPageTokens> tokens) const;
  // Calls see(hash, block, group) for every page.
  template <typename See>
  void each_page(const See& see) const {
    for (const auto& [hash, block] : blocks_)
      for (size_t group = 0; group < block.pages.size(); ++group)
        if (block.pages[group]) see(hash, block, group);
  }

 private:
  void forget_unused(BlockHash hash);

  std::unordered_map<BlockHash, Block> blocks_;
  std::unordered_map<BlockHash, int64_t> roots_;  // -> how many first blocks
};

}  // namespace optima::kv
