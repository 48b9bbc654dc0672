// The segmentation of a text into tokens with the highest sum of scores, over the bytes that begin
// or end a character (Kudo 2018, arXiv:1804.10959). The type of the sums is the caller's: of two
// segmentations that are nearly equal the rounding decides, and the libraries to be equalled round
// differently.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/hf/token_trie.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer {

template <typename Score>
struct ViterbiNode {
  Score score = 0;
  int32_t begin = -1;  // where the piece that ends here begins; -1 = none does
  int32_t id = -1;     // -1 = a character that is no token
};

// Fills nodes [bytes of text + 1]. extend(score, id, bytes) is the score of a path of `score` that
// goes on with this piece; id -1 as above. The result is whether every character is a token.
template <typename Score, typename Extend>
bool find_best_path(std::string_view text, const hf::TokenTrie& trie,
                    std::vector<ViterbiNode<Score>>& nodes, const Extend& extend) {
  nodes.assign(text.size() + 1, {});
  const auto offer = [&](size_t begin, size_t bytes, int32_t id) {
    ViterbiNode<Score>& node = nodes[begin + bytes];
    const Score score = extend(nodes[begin].score, id, bytes);
    if (node.begin >= 0 && !(score > node.score)) return;
    node = {score, static_cast<int32_t>(begin), id};
  };
  bool all_known = true;
  for (size_t begin = 0; begin < text.size();) {
    const Utf8Step step = utf8_step(text, begin);
    const size_t bytes = step.state == Utf8State::valid ? step.bytes : 1;
    bool is_token = false;
    trie.for_each_prefix(text.substr(begin), [&](size_t length, int32_t id) {
      offer(begin, length, id);
      is_token = is_token || length == bytes;
    });
    if (!is_token) {
      offer(begin, bytes, -1);
      all_known = false;
    }
    begin += bytes;
  }
  return all_known;
}

}  // namespace optima::tokenizer
