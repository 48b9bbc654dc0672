// Special tokens are few (up to some thousands), short, and rarely begin where the text does not
// mean them: a look at the first byte settles nearly every position of a long text.
#include "tokenizer/special_matcher.h"

namespace optima::tokenizer {

void SpecialMatcher::add(std::string_view text, int32_t id, TokenKind kind) {
  if (text.empty()) return;
  const auto first = static_cast<uint8_t>(text[0]);
  if (root_[first] == kNone) root_[first] = add_node(first);
  int32_t node = root_[first];
  for (const char c : text.substr(1)) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t child = child_of(node, byte);
    if (child == kNone) {
      child = add_node(byte);
      Node& parent = nodes_[static_cast<size_t>(node)];
      nodes_[static_cast<size_t>(child)].sibling = parent.child;
      parent.child = child;
    }
    node = child;
  }
  Node& end = nodes_[static_cast<size_t>(node)];
  end.id_parse = id;
  if (kind == TokenKind::user_defined) end.id_literal = id;
}

SpecialMatcher::Match SpecialMatcher::next(std::string_view text, size_t from,
                                           SpecialText special_text) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    const Match match = at(text, begin, special_text);
    if (match.bytes > 0) return match;
  }
  return {text.size(), 0, kNone};
}

SpecialMatcher::Match SpecialMatcher::at(std::string_view text, size_t begin,
                                         SpecialText special_text) const {
  Match match{begin, 0, kNone};
  int32_t node = root_[static_cast<uint8_t>(text[begin])];
  for (size_t at = begin; node != kNone;) {
    const Node& here = nodes_[static_cast<size_t>(node)];
    const int32_t id = special_text == SpecialText::parse ? here.id_parse : here.id_literal;
    if (id != kNone) match = {begin, at + 1 - begin, id};
    if (++at == text.size()) break;
    node = child_of(node, static_cast<uint8_t>(text[at]));
  }
  return match;
}

int32_t SpecialMatcher::child_of(int32_t node, uint8_t byte) const {
  int32_t child = nodes_[static_cast<size_t>(node)].child;
  while (child != kNone && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].sibling;
  }
  return child;
}

int32_t SpecialMatcher::add_node(uint8_t byte) {
  nodes_.push_back({byte});
  return static_cast<int32_t>(nodes_.size()) - 1;
}

}  // namespace optima::tokenizer
