// Open addressing with linear probing over at most half-full slots. A vocabulary has up to some
// 260,000 texts and is read far more often than written, so that one block of text and one array
// of slots beat a node per token both in loading time and in cache misses.
#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace optima::tokenizer {

Vocabulary::Vocabulary(std::span<const std::string_view> tokens)
    : size_(static_cast<int32_t>(tokens.size())) {
  size_t bytes = 0;
  for (const std::string_view token : tokens) bytes += token.size();
  block_.reserve(bytes);
  entries_.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) append(tokens[i], static_cast<int32_t>(i));
  rehash(std::bit_ceil(2 * tokens.size() + 2));
}

void Vocabulary::add_alias(std::string_view text, int32_t id) {
  append(text, id);
  if (2 * entries_.size() > slots_.size()) {
    rehash(2 * slots_.size());
  } else {
    insert(static_cast<int32_t>(entries_.size()) - 1);
  }
}

int32_t Vocabulary::find(std::string_view text) const {
  if (text.empty() || text.size() > text_bytes_max_) return -1;
  const int32_t entry = slots_[slot_of(text)];
  return entry < 0 ? -1 : entries_[static_cast<size_t>(entry)].id;
}

void Vocabulary::append(std::string_view text, int32_t id) {
  entries_.push_back({block_.size(), static_cast<uint32_t>(text.size()), id});
  block_.append(text);
  text_bytes_max_ = std::max(text_bytes_max_, text.size());
}

void Vocabulary::insert(int32_t entry) {
  const std::string_view text = entry_text(entries_[static_cast<size_t>(entry)]);
  if (!text.empty()) slots_[slot_of(text)] = entry;
}

void Vocabulary::rehash(size_t slots) {
  slots_.assign(slots, -1);
  for (size_t i = 0; i < entries_.size(); ++i) insert(static_cast<int32_t>(i));
}

// The slot that holds the text, or the free one where it belongs.
size_t Vocabulary::slot_of(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>{}(text)&mask;
  while (slots_[slot] >= 0 && entry_text(entries_[static_cast<size_t>(slots_[slot])]) != text) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

}  // namespace optima::tokenizer
