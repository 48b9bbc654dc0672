// All tokens that a text begins with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace optima::tokenizer::hf {

// Immutable. The children of a node stand side by side, sorted by their byte.
class TokenTrie {
 public:
  TokenTrie() = default;
  explicit TokenTrie(const Vocabulary& vocabulary);  // of equal tokens the last id counts

  // Calls visit(bytes, id) for each token that is a prefix of `text`, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const {
    if (nodes_.empty()) return;
    const Node* node = nodes_.data();
    for (size_t at = 0; at < text.size(); ++at) {
      const auto byte = static_cast<uint8_t>(text[at]);
      const Node* const begin = nodes_.data() + node->first_child;
      const Node* const end = begin + node->children;
      node = std::lower_bound(
          begin, end, byte, [](const Node& child, uint8_t wanted) { return child.byte < wanted; });
      if (node == end || node->byte != byte) return;
      if (node->id >= 0) visit(at + 1, node->id);
    }
  }

 private:
  struct Node {
    uint32_t first_child = 0;
    int32_t id = -1;
    uint16_t children = 0;
    uint8_t byte = 0;
  };
  std::vector<Node> nodes_;  // the root first
};

}  // namespace optima::tokenizer::hf
