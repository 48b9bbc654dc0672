// SentencePiece's normalisation rules. The tokenizers library asks it in its own way, and that way
// is kept: a grapheme cluster of less than six bytes is looked up as a whole and replaced as a
// whole by what its shortest known prefix becomes; only what is not found so is looked up character
// by character.
#include <utf8proc.h>

#include <optional>

#include "tokenizer/charsmap.h"
#include "tokenizer/hf/base64.h"
#include "tokenizer/hf/normalizers.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

constexpr size_t kClusterBytesMax = 5;

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap charsmap) : charsmap_(std::move(charsmap)) {}

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

  std::optional<std::string_view> find(std::string_view key) const {
    const std::optional<Charsmap::Rule> rule = charsmap_.shortest(key);
    return rule ? std::optional<std::string_view>(rule->replacement) : std::nullopt;
  }

  Charsmap charsmap_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> create_precompiled(const Component& component) {
  OPTIMA_ASSIGN(const std::string_view encoded, component.string("precompiled_charsmap"));
  const std::optional<std::string> bytes = decode_base64(encoded);
  if (!bytes) return component.wrong("precompiled_charsmap", "base64");
  OPTIMA_ASSIGN(Charsmap charsmap,
                Charsmap::create(*bytes, "tokenizer.json: " + component.place()));
  return std::unique_ptr<Normalizer>(std::make_unique<Precompiled>(std::move(charsmap)));
}

}  // namespace optima::tokenizer::hf
