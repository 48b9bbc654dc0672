// Built level by level from the sorted tokens: the tokens below a node are neighbours, so that a
// node is a range of them and a depth.
#include "tokenizer/hf/token_trie.h"

#include <numeric>

namespace optima::tokenizer::hf {

TokenTrie::TokenTrie(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(vocabulary.size()));
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](int32_t id) { return vocabulary.text(id).empty(); });
  std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    const int order = vocabulary.text(a).compare(vocabulary.text(b));
    return order != 0 ? order < 0 : a < b;
  });
  struct Below {
    size_t begin, end, depth;
  };
  std::vector<Below> below = {{0, ids.size(), 0}};  // by node
  nodes_.emplace_back();
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const Below range = below[node];
    size_t at = range.begin;
    // The tokens that end here come first: a text sorts before what it is a prefix of.
    for (; at < range.end && vocabulary.text(ids[at]).size() == range.depth; ++at) {
      nodes_[node].id = ids[at];
    }
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (at < range.end) {
      const char byte = vocabulary.text(ids[at])[range.depth];
      size_t end = at + 1;
      while (end < range.end && vocabulary.text(ids[end])[range.depth] == byte) ++end;
      nodes_.push_back({.byte = static_cast<uint8_t>(byte)});
      below.push_back({at, end, range.depth + 1});
      ++nodes_[node].children;
      at = end;
    }
  }
}

}  // namespace optima::tokenizer::hf
