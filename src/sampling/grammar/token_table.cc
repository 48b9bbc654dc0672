// Tokens sorted by their bytes are the leaves of the trie in order; nodes are laid down while going
// from one to the next, so that a walk is one pass over an array that jumps over what is dead.
#include "sampling/grammar/token_table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/text.h"

namespace optima::sampling {

Result<std::shared_ptr<const TokenTable>> TokenTable::create(
    std::span<const std::string_view> bytes, std::span<const TokenUse> uses) {
  constexpr size_t kTokenBytesMax = std::numeric_limits<uint16_t>::max();
  constexpr size_t kTextBytesMax = size_t{1} << 30;
  if (!uses.empty() && uses.size() != bytes.size())
    return Status(Code::invalid_argument,
                  text(uses.size(), " token uses for ", bytes.size(), " tokens"));
  auto table = std::make_shared<TokenTable>();
  table->uses_.assign(bytes.size(), TokenUse::text);
  std::copy(uses.begin(), uses.end(), table->uses_.begin());
  table->offsets_.push_back(0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const TokenUse use = table->uses_[i];
    if (use == TokenUse::end) table->ends_.push_back(static_cast<int32_t>(i));
    if (use == TokenUse::text) {
      if (bytes[i].size() > kTokenBytesMax || table->text_.size() + bytes[i].size() > kTextBytesMax)
        return Status(Code::invalid_argument,
                      text("token ", i, " has ", bytes[i].size(), " bytes, at most ",
                           kTokenBytesMax, " are supported, ", kTextBytesMax, " of all tokens"));
      table->text_ += bytes[i];
      table->longest_ = std::max(table->longest_, static_cast<int64_t>(bytes[i].size()));
    }
    table->offsets_.push_back(table->text_.size());
  }
  table->build_trie();
  return std::shared_ptr<const TokenTable>(std::move(table));
}

void TokenTable::build_trie() {
  for (int32_t token = 0; token < size(); ++token)
    if (!bytes(token).empty()) sorted_tokens_.push_back(token);
  by_length_ = sorted_tokens_;
  std::stable_sort(by_length_.begin(), by_length_.end(),
                   [&](int32_t a, int32_t b) { return bytes(a).size() > bytes(b).size(); });
  std::stable_sort(sorted_tokens_.begin(), sorted_tokens_.end(),
                   [&](int32_t a, int32_t b) { return bytes(a) < bytes(b); });
  nodes_.push_back({0, 0, 0, 0});
  std::vector<uint32_t> path{0};  // from the root to the node laid down last
  std::string_view last;
  for (size_t i = 0; i < sorted_tokens_.size(); ++i) {
    const std::string_view next = bytes(sorted_tokens_[i]);
    const auto common = static_cast<size_t>(
        std::mismatch(last.begin(), last.end(), next.begin(), next.end()).first - last.begin());
    for (; path.size() > common + 1; path.pop_back())
      nodes_[path.back()].subtree_end = static_cast<uint32_t>(nodes_.size());
    for (size_t depth = common; depth < next.size(); ++depth) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(i), static_cast<uint16_t>(depth + 1),
                        static_cast<uint8_t>(next[depth])});
    }
    last = next;
  }
  for (const uint32_t node : path) nodes_[node].subtree_end = static_cast<uint32_t>(nodes_.size());
}

bool TokenMask::any() const {
  return std::any_of(words.begin(), words.end(), [](uint64_t word) { return word != 0; });
}

// Most words are all zeros or all ones.
void TokenMask::apply(std::span<float> logits) const {
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  for (size_t first = 0; first < logits.size(); first += 64) {
    const uint64_t word = words[first / 64];
    if (word == ~uint64_t{0}) continue;
    const std::span<float> group =
        logits.subspan(first, std::min<size_t>(64, logits.size() - first));
    if (word == 0) {
      std::fill(group.begin(), group.end(), kForbidden);
      continue;
    }
    for (size_t i = 0; i < group.size(); ++i)
      group[i] = (word >> i & 1) != 0 ? group[i] : kForbidden;
  }
}

}  // namespace optima::sampling
