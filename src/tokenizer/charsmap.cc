// A double-array trie whose values are places in a block of zero-terminated replacements. A unit
// holds the label in its low byte, whether a value follows in bit 8, and the offset to the children
// above that.
#include "tokenizer/charsmap.h"

#include "base/text.h"

namespace optima::tokenizer {
namespace {

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::create(std::string_view bytes, std::string_view place) {
  const size_t trie = bytes.size() < 4 ? 0 : little_endian(bytes, 0);
  if (trie < 4 || trie % 4 != 0 || trie > bytes.size() - 4) {
    return Status(
        Code::format, text(place, ": a trie of ", trie, " bytes in ", bytes.size()),
        {.wanted = static_cast<int64_t>(trie), .available = static_cast<int64_t>(bytes.size())});
  }
  Charsmap made;
  made.units_.reserve(trie / 4);
  for (size_t at = 4; at < 4 + trie; at += 4) made.units_.push_back(little_endian(bytes, at));
  made.replacements_ = bytes.substr(4 + trie);
  return made;
}

std::optional<Charsmap::Rule> Charsmap::shortest(std::string_view text) const {
  return find(text, Want::shortest);
}

std::optional<Charsmap::Rule> Charsmap::longest(std::string_view text) const {
  return find(text, Want::longest);
}

std::optional<Charsmap::Rule> Charsmap::find(std::string_view key, Want want) const {
  std::optional<Rule> found;
  size_t node = offset_of(units_[0]);
  for (size_t at = 0; at < key.size(); ++at) {
    const auto byte = static_cast<uint8_t>(key[at]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & 0x800000FF) != byte) break;
    node ^= offset_of(unit);
    if ((unit & 0x100) == 0) continue;
    if (node >= units_.size()) break;
    const size_t place = units_[node] & 0x7FFFFFFF;
    if (place >= replacements_.size()) break;
    const std::string_view rest = std::string_view(replacements_).substr(place);
    found = Rule{at + 1, rest.substr(0, rest.find('\0'))};
    if (want == Want::shortest) break;
  }
  return found;
}

}  // namespace optima::tokenizer
