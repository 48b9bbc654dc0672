// The token texts of a model in one block of memory, and the way back from text to id.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace optima::tokenizer {

// Immutable after the last add_alias(). Where two tokens have one text the last id is found.
class Vocabulary {
 public:
  explicit Vocabulary(std::span<const std::string_view> tokens);

  // A second text under which `id` is found.
  void add_alias(std::string_view text, int32_t id);

  int32_t size() const { return size_; }
  std::string_view text(int32_t id) const { return entry_text(entries_[static_cast<size_t>(id)]); }
  int32_t find(std::string_view text) const;  // -1 = absent; the empty text is always absent
  size_t text_bytes_max() const { return text_bytes_max_; }

 private:
  struct Entry {
    size_t offset;
    uint32_t bytes;
    int32_t id;
  };
  std::string_view entry_text(const Entry& entry) const {
    return std::string_view(block_).substr(entry.offset, entry.bytes);
  }
  void append(std::string_view text, int32_t id);
  void insert(int32_t entry);
  void rehash(size_t slots);
  size_t slot_of(std::string_view text) const;

  std::string block_;
  std::vector<Entry> entries_;  // the tokens in the order of their ids, then the aliases
  std::vector<int32_t> slots_;  // open addressing: index into entries_, -1 = free
  int32_t size_ = 0;
  size_t text_bytes_max_ = 0;
};

}  // namespace optima::tokenizer
