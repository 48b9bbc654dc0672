// A chain of steps over a list of tokens, joined in the end. Bytes stay bytes: where the tokenizers
// library would put U+FFFD for what is no UTF-8, the text has the bytes themselves, because the
// code point may be completed by a later token.
#include "tokenizer/hf/decoders.h"

#include <optional>

#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/character_classes.h"
#include "tokenizer/hf/pattern.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

using Made = Result<std::unique_ptr<Decoder>>;

std::string replace_all(std::string_view in, std::string_view what, std::string_view with) {
  std::string out;
  size_t at = 0;
  for (size_t found = in.find(what); found != std::string_view::npos; found = in.find(what, at)) {
    out.append(in.substr(at, found - at)).append(with);
    at = found + what.size();
  }
  return out.append(in.substr(at));
}

class ByteLevel final : public Decoder {
 public:
  Status apply(std::vector<std::string>& tokens, Extent) const override {
    for (std::string& token : tokens) {
      std::string bytes;
      bool known = true;  // a token with any other character is no text of this alphabet
      for_each_code_point(token, [&](char32_t, std::string_view character) {
        const size_t before = bytes.size();
        alphabet_.append_bytes(character, bytes);
        known = known && bytes.size() == before + 1 && is_of_alphabet(character, bytes.back());
      });
      if (known) token = std::move(bytes);
    }
    return {};
  }

 private:
  bool is_of_alphabet(std::string_view character, char byte) const {
    return alphabet_.character(static_cast<uint8_t>(byte)) == character;
  }
  ByteAlphabet alphabet_;
};

class ByteFallback final : public Decoder {
 public:
  Status apply(std::vector<std::string>& tokens, Extent) const override {
    for (std::string& token : tokens) {
      if (const std::optional<uint8_t> byte = byte_of(token)) {
        token.assign(1, static_cast<char>(*byte));
      }
    }
    return {};
  }

 private:
  static std::optional<uint8_t> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return {};
    int value = 0;
    for (const char c : token.substr(3, 2)) {
      constexpr std::string_view kHex = "0123456789abcdef";
      const size_t digit = kHex.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == std::string_view::npos) return {};
      value = value * 16 + static_cast<int>(digit);
    }
    return static_cast<uint8_t>(value);
  }
};

class Fuse final : public Decoder {
 public:
  Status apply(std::vector<std::string>& tokens, Extent) const override {
    std::string all;
    for (const std::string& token : tokens) all.append(token);
    tokens.assign(1, std::move(all));
    return {};
  }
};

// Takes a character away at the ends of every token; after a Fuse these are the ends of the text.
class Strip final : public Decoder {
 public:
  enum class Of : uint8_t { token, text };
  struct Counts {
    int64_t start, stop;
  };
  Strip(std::string_view content, Counts counts, Of of)
      : content_(content), counts_(counts), of_(of) {}

  Status apply(std::vector<std::string>& tokens, Extent extent) const override {
    if (of_ == Of::text && extent == Extent::middle) return {};
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < counts_.start && rest.starts_with(content_); ++i) {
        rest.remove_prefix(content_.size());
      }
      for (int64_t i = 0; i < counts_.stop && rest.ends_with(content_); ++i) {
        rest.remove_suffix(content_.size());
      }
      token = std::string(rest);
    }
    return {};
  }

  static Made create(const Component& component, Of of) {
    OPTIMA_ASSIGN(const std::string_view content, one_character(component, "content", " "));
    OPTIMA_ASSIGN(const int64_t start, component.integer_or("start", 0));
    OPTIMA_ASSIGN(const int64_t stop, component.integer_or("stop", 0));
    return Made(std::make_unique<Strip>(content, Counts{start, stop}, of));
  }

 private:
  std::string content_;
  Counts counts_;
  Of of_;
};

class Replace final : public Decoder {
 public:
  Replace(std::unique_ptr<Pattern> pattern, std::string_view content)
      : pattern_(std::move(pattern)), content_(content) {}

  Status apply(std::vector<std::string>& tokens, Extent) const override {
    std::vector<Range> matches;
    for (std::string& token : tokens) {
      const std::optional<std::string> copy = pattern_subject(token);
      const bool as_it_is = !copy || pattern_->literal() != nullptr;
      TimeBudget budget(token.size());
      matches.clear();
      OPTIMA_TRY(pattern_->find_all(as_it_is ? token : *copy, budget, matches));
      std::string out;
      size_t at = 0;
      for (const Range& match : matches) {
        out.append(token, at, match.begin - at).append(content_);
        at = match.end;
      }
      token = out.append(token, at);
    }
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(auto pattern, Pattern::create(component));
    OPTIMA_ASSIGN(const std::string_view content, component.string("content"));
    return Made(std::make_unique<Replace>(std::move(pattern), content));
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class Metaspace final : public Decoder {
 public:
  enum class First : uint8_t { keep, strip };
  Metaspace(std::string_view replacement, First first) : replacement_(replacement), first_(first) {}

  Status apply(std::vector<std::string>& tokens, Extent extent) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool strip = i == 0 && extent == Extent::whole && first_ == First::strip;
      tokens[i] = replace_all(tokens[i], replacement_, strip ? "" : " ");
    }
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(const std::string_view replacement,
                  one_character(component, "replacement", "\xE2\x96\x81"));
    OPTIMA_ASSIGN(const int old_prefix, component.flag_or("add_prefix_space", 1));
    OPTIMA_ASSIGN(const std::string_view scheme,
                  component.string_or("prepend_scheme", old_prefix != 0 ? "always" : "never"));
    return Made(
        std::make_unique<Metaspace>(replacement, scheme == "never" ? First::keep : First::strip));
  }

 private:
  std::string replacement_;
  First first_;
};

class WordPiece final : public Decoder {
 public:
  enum class Cleanup : uint8_t { none, punctuation };
  WordPiece(std::string_view prefix, Cleanup cleanup) : prefix_(prefix), cleanup_(cleanup) {}

  Status apply(std::vector<std::string>& tokens, Extent extent) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 || extent == Extent::middle) {
        if (token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (cleanup_ == Cleanup::punctuation) token = cleaned(std::move(token));
    }
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(const std::string_view prefix, component.string_or("prefix", "##"));
    OPTIMA_ASSIGN(const int cleanup, component.flag_or("cleanup", 1));
    return Made(
        std::make_unique<WordPiece>(prefix, cleanup != 0 ? Cleanup::punctuation : Cleanup::none));
  }

 private:
  static std::string cleaned(std::string token) {
    struct Row {
      std::string_view from, to;
    };
    constexpr Row kRows[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                             {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                             {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const Row& row : kRows) token = replace_all(token, row.from, row.to);
    return token;
  }
  std::string prefix_;
  Cleanup cleanup_;
};

class WordSuffix final : public Decoder {
 public:
  explicit WordSuffix(std::string_view suffix) : suffix_(suffix) {}
  Status apply(std::vector<std::string>& tokens, Extent extent) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool last = i + 1 == tokens.size() && extent == Extent::whole;
      tokens[i] = replace_all(tokens[i], suffix_, last ? "" : " ");
    }
    return {};
  }
  static Made create(const Component& component) {
    OPTIMA_ASSIGN(const std::string_view suffix, component.string_or("suffix", "</w>"));
    if (suffix.empty()) return component.unsupported("suffix", suffix);
    return Made(std::make_unique<WordSuffix>(suffix));
  }

 private:
  std::string suffix_;
};

class SpaceBetween final : public Decoder {
 public:
  Status apply(std::vector<std::string>& tokens, Extent extent) const override {
    for (size_t i = extent == Extent::whole ? 1 : 0; i < tokens.size(); ++i)
      tokens[i].insert(0, " ");
    return {};
  }
};

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  Status apply(std::vector<std::string>& tokens, Extent extent) const override {
    for (const auto& step : steps_) OPTIMA_TRY(step->apply(tokens, extent));
    return {};
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

Made create_step(const Component& component, int nesting, Strip::Of& strips) {
  OPTIMA_ASSIGN(const std::string_view type, component.type());
  if (type == "Sequence") {
    OPTIMA_ASSIGN(const std::vector<Component> parts, steps_of(component, "decoders", nesting));
    std::vector<std::unique_ptr<Decoder>> steps;
    for (const Component& part : parts) {
      OPTIMA_ASSIGN(auto step, create_step(part, nesting + 1, strips));
      steps.push_back(std::move(step));
    }
    return Made(std::make_unique<Sequence>(std::move(steps)));
  }
  if (type == "Fuse") {
    strips = Strip::Of::text;
    return Made(std::make_unique<Fuse>());
  }
  if (type == "ByteLevel") return Made(std::make_unique<ByteLevel>());
  if (type == "ByteFallback") return Made(std::make_unique<ByteFallback>());
  if (type == "Strip") return Strip::create(component, strips);
  if (type == "Replace") return Replace::create(component);
  if (type == "Metaspace") return Metaspace::create(component);
  if (type == "WordPiece") return WordPiece::create(component);
  if (type == "BPEDecoder") return WordSuffix::create(component);
  return component.unsupported("decoder", type);
}

}  // namespace

std::unique_ptr<Decoder> create_concatenation() {
  return std::make_unique<Fuse>();
}

Made Decoder::create(const json::Value* value) {
  if (value == nullptr || value->is_null()) return Made(std::make_unique<SpaceBetween>());
  OPTIMA_ASSIGN(const Component component, Component::of(*value, "decoder"));
  Strip::Of strips = Strip::Of::token;
  return create_step(component, 0, strips);
}

}  // namespace optima::tokenizer::hf
