// One class a type of the file. Most rewrite the text character by character.
#include "tokenizer/hf/normalizers.h"

#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/character_classes.h"
#include "tokenizer/hf/pattern.h"
#include "tokenizer/hf/unicode.h"
#include "tokenizer/normalize.h"

namespace optima::tokenizer::hf {
namespace {

using Made = Result<std::unique_ptr<Normalizer>>;

bool is_ascii(std::string_view input) {
  for (const char c : input) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

// Calls rewrite(value, bytes, out) for each character, which appends what it becomes.
template <typename Rewrite>
void map_characters(NormalizedText& text, const Rewrite& rewrite) {
  std::string out;
  out.reserve(text.bytes.size() + text.bytes.size() / 8);
  bool first = true;
  for_each_code_point(text.bytes, [&](char32_t value, std::string_view bytes) {
    rewrite(value, bytes, out);
    if (first && out.empty()) text.start = Start::inside;
    first = false;
  });
  text.bytes = std::move(out);
}

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  Status apply(NormalizedText& text) const override {
    for (const auto& step : steps_) OPTIMA_TRY(step->apply(text));
    return {};
  }
  static Made create(const Component& component, int nesting) {
    OPTIMA_ASSIGN(const std::vector<Component> parts, steps_of(component, "normalizers", nesting));
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const Component& part : parts) {
      OPTIMA_ASSIGN(auto step, Normalizer::create(part, nesting + 1));
      steps.push_back(std::move(step));
    }
    return Made(std::make_unique<Sequence>(std::move(steps)));
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

class Form final : public Normalizer {
 public:
  explicit Form(NormalizationForm form,
                NormalizationTables tables = NormalizationTables::tokenizers)
      : form_(form), tables_(tables) {}
  Status apply(NormalizedText& text) const override {
    if (!is_ascii(text.bytes)) text.bytes = normalize(text.bytes, form_, tables_);
    return {};
  }

 private:
  NormalizationForm form_;
  NormalizationTables tables_;
};

template <NormalizationForm form>
Made create_form(const Component&) {
  return Made(std::make_unique<Form>(form));
}

class Lowercase final : public Normalizer {
 public:
  Status apply(NormalizedText& text) const override {
    map_characters(text, [](char32_t value, std::string_view bytes, std::string& out) {
      if (value == kNoCodePoint) {
        out.append(bytes);
      } else {
        append_lowercase(value, out);
      }
    });
    return {};
  }
};

class Deletion final : public Normalizer {
 public:
  explicit Deletion(CodePointClass which) : which_(which) {}
  Status apply(NormalizedText& text) const override {
    map_characters(text, [&](char32_t value, std::string_view bytes, std::string& out) {
      if (!in_class(which_, value)) out.append(bytes);
    });
    return {};
  }

 private:
  CodePointClass which_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Pattern> pattern, std::string_view content)
      : pattern_(std::move(pattern)), content_(content) {}

  Status apply(NormalizedText& text) const override {
    const std::optional<std::string> copy = pattern_subject(text.bytes);
    const bool as_it_is = !copy || pattern_->literal() != nullptr;
    std::vector<Range> matches;
    TimeBudget budget(text.bytes.size());
    OPTIMA_TRY(pattern_->find_all(as_it_is ? text.bytes : *copy, budget, matches));
    if (matches.empty()) return {};
    if (content_.empty() && matches[0].begin == 0) text.start = Start::inside;
    std::string out;
    size_t at = 0;
    for (const Range& match : matches) {
      out.append(text.bytes, at, match.begin - at).append(content_);
      at = match.end;
      if (out.size() > kBytesMax) {
        return Status(Code::invalid_argument, text_of_limit(out.size()),
                      {.wanted = static_cast<int64_t>(out.size()), .limit = kBytesMax});
      }
    }
    out.append(text.bytes, at);
    text.bytes = std::move(out);
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(auto pattern, Pattern::create(component));
    OPTIMA_ASSIGN(const std::string_view content, component.string("content"));
    return Made(std::make_unique<Replace>(std::move(pattern), content));
  }

 private:
  static constexpr size_t kBytesMax = INT32_MAX / 2;
  static std::string text_of_limit(size_t bytes) {
    return text("normaliser: the text grows beyond ", bytes, " bytes; at most ", kBytesMax);
  }

  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string_view prefix) : prefix_(prefix) {}
  Status apply(NormalizedText& text) const override {
    if (!text.bytes.empty()) text.bytes.insert(0, prefix_);
    return {};
  }
  static Made create(const Component& component) {
    OPTIMA_ASSIGN(const std::string_view prefix, component.string("prepend"));
    return Made(std::make_unique<Prepend>(prefix));
  }

 private:
  std::string prefix_;
};

class Strip final : public Normalizer {
 public:
  enum class Side : uint8_t { keep, strip };
  Strip(Side left, Side right) : left_(left), right_(right) {}

  Status apply(NormalizedText& text) const override {
    size_t begin = std::string::npos, end = 0, at = 0;  // of what is not space
    for_each_code_point(text.bytes, [&](char32_t value, std::string_view bytes) {
      if (!is_space(value)) {
        begin = std::min(begin, at);
        end = at + bytes.size();
      }
      at += bytes.size();
    });
    if (begin == std::string::npos) begin = end = left_ == Side::strip ? at : 0;
    if (right_ == Side::strip) text.bytes.resize(std::max(begin, end));
    if (left_ == Side::strip && begin > 0) {
      text.bytes.erase(0, begin);
      text.start = Start::inside;
    }
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(const int left, component.flag_or("strip_left", 1));
    OPTIMA_ASSIGN(const int right, component.flag_or("strip_right", 1));
    return Made(std::make_unique<Strip>(left != 0 ? Side::strip : Side::keep,
                                        right != 0 ? Side::strip : Side::keep));
  }

 private:
  Side left_, right_;
};

// BERT's: control characters go, every space becomes ' '.
class Clean final : public Normalizer {
 public:
  Status apply(NormalizedText& text) const override {
    map_characters(text, [](char32_t value, std::string_view bytes, std::string& out) {
      if (in_class(CodePointClass::cleaned, value)) return;
      if (is_space(value)) {
        out.push_back(' ');
      } else {
        out.append(bytes);
      }
    });
    return {};
  }
};

class SpacesAroundIdeographs final : public Normalizer {
 public:
  Status apply(NormalizedText& text) const override {
    map_characters(text, [](char32_t value, std::string_view bytes, std::string& out) {
      const bool apart = is_cjk_ideograph(value);
      if (apart) out.push_back(' ');
      out.append(bytes);
      if (apart) out.push_back(' ');
    });
    return {};
  }
};

Made create_bert(const Component& component) {
  OPTIMA_ASSIGN(const int clean, component.flag_or("clean_text", 1));
  OPTIMA_ASSIGN(const int ideographs, component.flag_or("handle_chinese_chars", 1));
  OPTIMA_ASSIGN(const int lowercase, component.flag_or("lowercase", 1));
  OPTIMA_ASSIGN(const int accents, component.flag_or("strip_accents", lowercase));
  std::vector<std::unique_ptr<Normalizer>> steps;
  if (clean != 0) steps.push_back(std::make_unique<Clean>());
  if (ideographs != 0) steps.push_back(std::make_unique<SpacesAroundIdeographs>());
  if (accents != 0) {
    steps.push_back(std::make_unique<Form>(NormalizationForm::nfd));
    steps.push_back(std::make_unique<Deletion>(CodePointClass::nonspacing));
  }
  if (lowercase != 0) steps.push_back(std::make_unique<Lowercase>());
  return Made(std::make_unique<Sequence>(std::move(steps)));
}

// SentencePiece's clean-up: some control characters go, others are spaces.
class Nmt final : public Normalizer {
 public:
  Status apply(NormalizedText& text) const override {
    map_characters(text, [](char32_t value, std::string_view bytes, std::string& out) {
      if (is_deleted(value)) return;
      if (becomes_space(value)) {
        out.push_back(' ');
      } else {
        out.append(bytes);
      }
    });
    return {};
  }

 private:
  static bool is_deleted(char32_t value) {
    return (value >= 0x01 && value <= 0x08) || value == 0x0B || (value >= 0x0E && value <= 0x1F) ||
           value == 0x7F || value == 0x8F || value == 0x9F;
  }
  static bool becomes_space(char32_t value) {
    return value == 0x09 || value == 0x0A || value == 0x0C || value == 0x0D || value == 0x1680 ||
           (value >= 0x200B && value <= 0x200F) || value == 0x2028 || value == 0x2029 ||
           value == 0x2581 || value == 0xFEFF || value == 0xFFFD;
  }
};

class BytesAsCharacters final : public Normalizer {
 public:
  Status apply(NormalizedText& text) const override {
    std::string out;
    alphabet_.append_characters(text.bytes, out);
    text.bytes = std::move(out);
    return {};
  }

 private:
  ByteAlphabet alphabet_;
};

Made create_lowercase(const Component&) {
  return Made(std::make_unique<Lowercase>());
}
Made create_strip_accents(const Component&) {
  return Made(std::make_unique<Deletion>(CodePointClass::mark));
}
Made create_nmt(const Component&) {
  return Made(std::make_unique<Nmt>());
}
Made create_byte_level(const Component&) {
  return Made(std::make_unique<BytesAsCharacters>());
}

}  // namespace

std::unique_ptr<Normalizer> create_nfc() {
  return std::make_unique<Form>(NormalizationForm::nfc, NormalizationTables::newest);
}

Made Normalizer::create(const Component& component, int nesting) {
  struct Row {
    std::string_view type;
    Made (*create)(const Component& component);
  };
  constexpr Row kRows[] = {
      {"NFC", create_form<NormalizationForm::nfc>},
      {"NFD", create_form<NormalizationForm::nfd>},
      {"NFKC", create_form<NormalizationForm::nfkc>},
      {"NFKD", create_form<NormalizationForm::nfkd>},
      {"Lowercase", create_lowercase},
      {"StripAccents", create_strip_accents},
      {"Replace", Replace::create},
      {"Prepend", Prepend::create},
      {"Strip", Strip::create},
      {"BertNormalizer", create_bert},
      {"Nmt", create_nmt},
      {"ByteLevel", create_byte_level},
      {"Precompiled", create_precompiled},
  };
  OPTIMA_ASSIGN(const std::string_view type, component.type());
  if (type == "Sequence") return Sequence::create(component, nesting);
  for (const Row& row : kRows) {
    if (row.type == type) return row.create(component);
  }
  return component.unsupported("normaliser", type);
}

}  // namespace optima::tokenizer::hf
