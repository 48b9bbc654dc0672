// SentencePiece's normalisation rules: a double-array trie from texts to places in a block of
// replacements. The tokenizers library asks it in its own way, and that way is kept: a grapheme
// cluster of less than six bytes is looked up as a whole and replaced as a whole by what its
// shortest known prefix becomes; only what is not found so is looked up character by character.
#include <utf8proc.h>

#include "base/text.h"
#include "tokenizer/hf/base64.h"
#include "tokenizer/hf/normalizers.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

constexpr size_t kClusterBytesMax = 5;

class Precompiled final : public Normalizer {
 public:
  static Result<std::unique_ptr<Normalizer>> create(std::string charsmap, std::string_view place);

  Status apply(NormalizedText& text) const override {
    const std::string& in = text.bytes;
    std::string out;
    out.reserve(in.size());
    bool first = true;
    for (size_t at = 0; at < in.size();) {
      const size_t bytes = cluster_at(in, at);
      append_cluster(std::string_view(in).substr(at, bytes), out);
      if (first && out.empty()) text.start = Start::inside;
      first = false;
      at += bytes;
    }
    text.bytes = std::move(out);
    return {};
  }

 private:
  static size_t cluster_at(std::string_view in, size_t begin) {
    Utf8Step step = utf8_step(in, begin);
    if (step.state != Utf8State::valid) return 1;
    utf8proc_int32_t state = 0;
    size_t at = begin + step.bytes;
    while (at < in.size()) {
      const Utf8Step next = utf8_step(in, at);
      if (next.state != Utf8State::valid ||
          utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(step.value),
                                           static_cast<utf8proc_int32_t>(next.value), &state)) {
        break;
      }
      at += next.bytes;
      step = next;
    }
    return at - begin;
  }

  void append_cluster(std::string_view cluster, std::string& out) const {
    if (cluster.size() <= kClusterBytesMax) {
      if (const std::optional<std::string_view> found = find(cluster)) {
        out.append(*found);
        return;
      }
    }
    for_each_code_point(cluster, [&](char32_t, std::string_view character) {
      out.append(find(character).value_or(character));
    });
  }

  // The replacement of the shortest prefix that has one. A unit of the double array holds the
  // label in its low byte, whether a value follows in bit 8, and the offset to the children above.
  std::optional<std::string_view> find(std::string_view key) const {
    const auto offset_of = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
    size_t node = offset_of(units_[0]);
    for (const char c : key) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte == 0) return std::nullopt;
      node ^= byte;
      if (node >= units_.size()) return std::nullopt;
      const uint32_t unit = units_[node];
      if ((unit & 0x800000FF) != byte) return std::nullopt;
      node ^= offset_of(unit);
      if ((unit & 0x100) == 0) continue;
      if (node >= units_.size()) return std::nullopt;
      const size_t at = units_[node] & 0x7FFFFFFF;
      if (at >= replacements_.size()) return std::nullopt;
      const std::string_view rest = std::string_view(replacements_).substr(at);
      return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
  }

  std::vector<uint32_t> units_;
  std::string replacements_;
};

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

Result<std::unique_ptr<Normalizer>> Precompiled::create(std::string charsmap,
                                                        std::string_view place) {
  const size_t bytes = charsmap.size() < 4 ? 0 : little_endian(charsmap, 0);
  if (bytes < 4 || bytes % 4 != 0 || bytes > charsmap.size() - 4) {
    return Status(Code::format, text(place, ": a trie of ", bytes, " bytes in ", charsmap.size()),
                  {.wanted = static_cast<int64_t>(bytes),
                   .available = static_cast<int64_t>(charsmap.size())});
  }
  auto made = std::make_unique<Precompiled>();
  for (size_t at = 4; at < 4 + bytes; at += 4) made->units_.push_back(little_endian(charsmap, at));
  made->replacements_ = charsmap.substr(4 + bytes);
  return std::unique_ptr<Normalizer>(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Normalizer>> create_precompiled(std::string charsmap,
                                                       std::string_view place) {
  return Precompiled::create(std::move(charsmap), place);
}

Result<std::unique_ptr<Normalizer>> create_precompiled(const Component& component) {
  OPTIMA_ASSIGN(const std::string_view encoded, component.string("precompiled_charsmap"));
  std::optional<std::string> charsmap = decode_base64(encoded);
  if (!charsmap) return component.wrong("precompiled_charsmap", "base64");
  return Precompiled::create(std::move(*charsmap), "tokenizer.json: " + component.place());
}

}  // namespace optima::tokenizer::hf
