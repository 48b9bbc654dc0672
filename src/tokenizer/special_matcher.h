// Finds the special and added tokens of a vocabulary in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

// A byte trie; the leftmost match wins, the longest of those that begin there. Immutable after the
// last add().
class SpecialMatcher {
 public:
  SpecialMatcher() { root_.fill(kNone); }

  // user_defined tokens are found always, other kinds only with SpecialText::parse.
  void add(std::string_view text, int32_t id, TokenKind kind);

  struct Match {
    size_t begin;
    size_t bytes;  // 0 = no match up to the end of the text
    int32_t id;
  };
  Match next(std::string_view text, size_t from, SpecialText special_text) const;
  // The match that begins at `begin`, of 0 bytes when none does.
  Match at(std::string_view text, size_t begin, SpecialText special_text) const;

 private:
  static constexpr int32_t kNone = -1;
  struct Node {
    uint8_t byte;
    int32_t sibling = kNone;
    int32_t child = kNone;
    int32_t id_literal = kNone;
    int32_t id_parse = kNone;
  };
  int32_t child_of(int32_t node, uint8_t byte) const;
  int32_t add_node(uint8_t byte);

  std::array<int32_t, 256> root_;  // first bytes, so that most positions cost one look
  std::vector<Node> nodes_;
};

}  // namespace optima::tokenizer
