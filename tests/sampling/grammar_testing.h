// Vocabularies and short forms for the tests of grammars.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/grammar/grammar.h"

namespace optima::sampling {

// Every byte, some longer tokens, a control token and, last, an end token.
inline std::shared_ptr<const TokenTable> byte_table(const std::vector<std::string>& more = {}) {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  bytes.insert(bytes.end(), more.begin(), more.end());
  std::vector<TokenUse> uses(bytes.size(), TokenUse::text);
  bytes.emplace_back("<control>");
  uses.push_back(TokenUse::control);
  bytes.emplace_back("");
  uses.push_back(TokenUse::end);
  const std::vector<std::string_view> views(bytes.begin(), bytes.end());
  return TokenTable::create(views, uses).take();
}

inline Result<std::shared_ptr<const Grammar>> compile(GrammarKind kind, std::string_view text,
                                                      const grammar::Limits& limits = {}) {
  return Grammar::compile({kind, text}, byte_table(), limits);
}

// "yes", "more" (a start of a text) or "no".
inline std::string verdict(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarState state(grammar);
  if (!state.accept_text(text).ok()) return "no";
  return state.can_end() ? "yes" : "more";
}

}  // namespace optima::sampling
