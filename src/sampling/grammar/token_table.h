// The vocabulary as the grammar sees it: the bytes of every token, in a trie laid out in the order
// of a depth-first walk. Plain data: the tokenizer is another layer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace optima::sampling {

enum class TokenUse : uint8_t {
  text,     // stands for its bytes
  control,  // never allowed under a grammar; its bytes are not looked at
  end,      // ends the generation: allowed where the grammar can end
};

class TokenTable {
 public:
  // bytes[i] is what token i adds to the output; uses may be empty (all text). A text token without
  // bytes is never allowed: it would not bring the text forward.
  static Result<std::shared_ptr<const TokenTable>> create(std::span<const std::string_view> bytes,
                                                          std::span<const TokenUse> uses);

  int32_t size() const { return static_cast<int32_t>(uses_.size()); }
  TokenUse use(int32_t token) const { return uses_[static_cast<size_t>(token)]; }
  std::string_view bytes(int32_t token) const {
    const auto i = static_cast<size_t>(token);
    return std::string_view(text_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  const std::vector<int32_t>& ends() const { return ends_; }

  // The trie. Node 0 is the root; the children of a node follow it, each with its subtree.
  struct Node {
    uint32_t subtree_end;  // the first node after the subtree
    uint32_t first_token;  // index into tokens(); the last is that of the next node
    uint16_t depth;        // bytes from the root
    uint8_t byte;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  std::span<const int32_t> tokens_at(uint32_t node) const {
    const uint32_t first = nodes_[node].first_token;
    const size_t last =
        node + 1 < nodes_.size() ? nodes_[node + 1].first_token : sorted_tokens_.size();
    return std::span(sorted_tokens_).subspan(first, last - first);
  }
  int64_t longest() const { return longest_; }
  // Text tokens, the longest first.
  const std::vector<int32_t>& by_length() const { return by_length_; }

 private:
  void build_trie();

  std::string text_;
  std::vector<size_t> offsets_;
  std::vector<TokenUse> uses_;
  std::vector<int32_t> ends_, sorted_tokens_, by_length_;
  std::vector<Node> nodes_;
  int64_t longest_ = 0;
};

// One bit a token.
struct TokenMask {
  std::vector<uint64_t> words;
  bool allows(int32_t token) const {
    const auto i = static_cast<size_t>(token);
    return (words[i / 64] >> (i % 64) & 1) != 0;
  }
  void allow(int32_t token) {
    const auto i = static_cast<size_t>(token);
    words[i / 64] |= uint64_t{1} << (i % 64);
  }
  void forbid(int32_t token) {
    const auto i = static_cast<size_t>(token);
    words[i / 64] &= ~(uint64_t{1} << (i % 64));
  }
  bool any() const;
  // Sets the logits of tokens that are not allowed to -inf. logits [size of the vocabulary].
  void apply(std::span<float> logits) const;
};

}  // namespace optima::sampling
