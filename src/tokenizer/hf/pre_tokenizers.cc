// One class a kind of splitting, one row a type of the file. Splits keep the buffer and cut the
// pieces; what changes the text writes a new buffer.
#include "tokenizer/hf/pre_tokenizers.h"

#include <functional>

#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/character_classes.h"
#include "tokenizer/hf/pattern.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

using Made = Result<std::unique_ptr<PreTokenizer>>;

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  Status apply(Pieces& pieces) const override {
    for (const auto& step : steps_) OPTIMA_TRY(step->apply(pieces));
    return {};
  }
  static Made create(const Component& component, int nesting) {
    OPTIMA_ASSIGN(const std::vector<Component> parts,
                  steps_of(component, "pretokenizers", nesting));
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    for (const Component& part : parts) {
      OPTIMA_ASSIGN(auto step, PreTokenizer::create(part, nesting + 1));
      steps.push_back(std::move(step));
    }
    return Made(std::make_unique<Sequence>(std::move(steps)));
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

Result<SplitBehavior> behavior_of(const Component& component) {
  struct Row {
    std::string_view name;
    SplitBehavior behavior;
  };
  constexpr Row kRows[] = {{"Removed", SplitBehavior::removed},
                           {"Isolated", SplitBehavior::isolated},
                           {"MergedWithPrevious", SplitBehavior::merged_with_previous},
                           {"MergedWithNext", SplitBehavior::merged_with_next},
                           {"Contiguous", SplitBehavior::contiguous}};
  OPTIMA_ASSIGN(const std::string_view name, component.string_or("behavior", "Isolated"));
  for (const Row& row : kRows) {
    if (row.name == name) return row.behavior;
  }
  return component.unsupported("behavior", name);
}

// Cuts at the matches of a pattern.
class Split final : public PreTokenizer {
 public:
  enum class Meaning : uint8_t { matches, gaps };  // which of them the behaviour calls matches

  Split(std::unique_ptr<Pattern> pattern, SplitBehavior behavior, Meaning meaning)
      : pattern_(std::move(pattern)), behavior_(behavior), meaning_(meaning) {}

  Status apply(Pieces& pieces) const override {
    const std::optional<std::string> copy = pattern_subject(pieces.text);
    const bool as_it_is = !copy || pattern_->literal() != nullptr;
    const std::string_view subject = as_it_is ? pieces.text : std::string_view(*copy);
    TimeBudget budget(subject.size());
    std::vector<Piece> finer;
    finer.reserve(pieces.pieces.size() + pieces.text.size() / 8);
    std::vector<Range> matches;
    std::vector<Cut> cuts;
    for (const Piece& piece : pieces.pieces) {
      const size_t bytes = piece.end - piece.begin;
      matches.clear();
      OPTIMA_TRY(pattern_->find_all(subject.substr(piece.begin, bytes), budget, matches));
      cuts_of(matches, bytes, cuts);
      if (meaning_ == Meaning::gaps) {
        for (Cut& cut : cuts) cut.is_match ^= 1;
      }
      append_pieces(piece, cuts, behavior_, finer);
    }
    pieces.pieces.swap(finer);
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(auto pattern, Pattern::create(component));
    OPTIMA_ASSIGN(const SplitBehavior behavior, behavior_of(component));
    OPTIMA_ASSIGN(const int invert, component.flag_or("invert", 0));
    return Made(std::make_unique<Split>(std::move(pattern), behavior,
                                        invert != 0 ? Meaning::gaps : Meaning::matches));
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  SplitBehavior behavior_;
  Meaning meaning_;
};

// Cuts at the characters of a class.
class ClassSplit final : public PreTokenizer {
 public:
  using Test = bool (*)(char32_t value);
  ClassSplit(Test test, SplitBehavior behavior) : test_(test), behavior_(behavior) {}

  Status apply(Pieces& pieces) const override {
    std::vector<Piece> finer;
    std::vector<Range> matches;
    std::vector<Cut> cuts;
    for (const Piece& piece : pieces.pieces) {
      matches.clear();
      size_t at = 0;
      for_each_code_point(pieces.view(piece), [&](char32_t value, std::string_view bytes) {
        if (test_(value)) matches.push_back({at, at + bytes.size()});
        at += bytes.size();
      });
      cuts_of(matches, piece.end - piece.begin, cuts);
      append_pieces(piece, cuts, behavior_, finer);
    }
    pieces.pieces.swap(finer);
    return {};
  }

 private:
  Test test_;
  SplitBehavior behavior_;
};

bool is_number(char32_t value) {
  return in_class(CodePointClass::number, value);
}
bool is_punctuation(char32_t value) {
  return in_class(CodePointClass::punctuation, value);
}

// Runs of word characters and runs of what is neither that nor space.
class Whitespace final : public PreTokenizer {
 public:
  Status apply(Pieces& pieces) const override {
    enum class Kind : uint8_t { space, word, other };
    std::vector<Piece> finer;
    for (const Piece& piece : pieces.pieces) {
      size_t begin = piece.begin, at = piece.begin;
      Kind run = Kind::space;
      const auto finish = [&] {
        if (run == Kind::space) return;
        finer.push_back({begin, at, begin == piece.begin ? piece.start : Start::inside});
      };
      for_each_code_point(pieces.view(piece), [&](char32_t value, std::string_view bytes) {
        const Kind kind = in_class(CodePointClass::word, value) ? Kind::word
                          : is_space(value)                     ? Kind::space
                                                                : Kind::other;
        if (kind != run) {
          finish();
          begin = at;
          run = kind;
        }
        at += bytes.size();
      });
      finish();
    }
    pieces.pieces.swap(finer);
    return {};
  }
};

// Writes every piece anew.
template <typename Rewrite>
void rewrite(Pieces& pieces, const Rewrite& write) {
  std::string out;
  out.reserve(pieces.text.size() + pieces.text.size() / 2);
  for (Piece& piece : pieces.pieces) {
    const size_t begin = out.size();
    write(pieces.view(piece), piece.start, out);
    piece.begin = begin;
    piece.end = out.size();
  }
  std::erase_if(pieces.pieces, [](const Piece& piece) { return piece.begin == piece.end; });
  pieces.text = std::move(out);
}

class BytesAsCharacters final : public PreTokenizer {
 public:
  Status apply(Pieces& pieces) const override {
    rewrite(pieces, [&](std::string_view piece, Start, std::string& out) {
      alphabet_.append_characters(piece, out);
    });
    return {};
  }

 private:
  ByteAlphabet alphabet_;
};

class SpacePrefix final : public PreTokenizer {
 public:
  Status apply(Pieces& pieces) const override {
    rewrite(pieces, [&](std::string_view piece, Start, std::string& out) {
      if (!piece.starts_with(' ')) out.push_back(' ');
      out.append(piece);
    });
    return {};
  }
};

constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Made create_byte_level(const Component& component) {
  OPTIMA_ASSIGN(const int add_prefix_space, component.flag_or("add_prefix_space", 1));
  OPTIMA_ASSIGN(const int use_regex, component.flag_or("use_regex", 1));
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  if (add_prefix_space != 0) steps.push_back(std::make_unique<SpacePrefix>());
  if (use_regex != 0) {
    OPTIMA_ASSIGN(auto pattern, Pattern::of_regex(kGpt2Words));
    steps.push_back(std::make_unique<Split>(std::move(pattern), SplitBehavior::isolated,
                                            Split::Meaning::matches));
  }
  steps.push_back(std::make_unique<BytesAsCharacters>());
  return Made(std::make_unique<Sequence>(std::move(steps)));
}

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend : uint8_t { always, first, never };
  Metaspace(std::string_view replacement, Prepend prepend)
      : replacement_(replacement), prepend_(prepend) {}

  Status apply(Pieces& pieces) const override {
    rewrite(pieces, [&](std::string_view piece, Start start, std::string& out) {
      const bool wanted =
          prepend_ == Prepend::always || (prepend_ == Prepend::first && start == Start::text);
      if (wanted && !piece.starts_with(' ') && !piece.starts_with(replacement_)) {
        out.append(replacement_);
      }
      for (const char c : piece) {
        if (c == ' ') {
          out.append(replacement_);
        } else {
          out.push_back(c);
        }
      }
    });
    return {};
  }

  static Made create(const Component& component) {
    OPTIMA_ASSIGN(const std::string_view replacement,
                  one_character(component, "replacement", "\xE2\x96\x81"));
    OPTIMA_ASSIGN(const int old_prefix, component.flag_or("add_prefix_space", 1));
    OPTIMA_ASSIGN(const std::string_view scheme,
                  component.string_or("prepend_scheme", old_prefix != 0 ? "always" : "never"));
    OPTIMA_ASSIGN(const int split, component.flag_or("split", 1));
    const bool always = scheme == "always", first = scheme == "first";
    if (!always && !first && scheme != "never") {
      return component.unsupported("prepend_scheme", scheme);
    }
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    steps.push_back(std::make_unique<Metaspace>(replacement, always  ? Prepend::always
                                                             : first ? Prepend::first
                                                                     : Prepend::never));
    if (split != 0) {
      OPTIMA_ASSIGN(auto pattern, Pattern::of_literal(replacement));
      steps.push_back(std::make_unique<Split>(std::move(pattern), SplitBehavior::merged_with_next,
                                              Split::Meaning::matches));
    }
    return Made(std::make_unique<Sequence>(std::move(steps)));
  }

 private:
  std::string replacement_;
  Prepend prepend_;
};

Made create_digits(const Component& component) {
  OPTIMA_ASSIGN(const int individual, component.flag_or("individual_digits", 0));
  return Made(std::make_unique<ClassSplit>(
      is_number, individual != 0 ? SplitBehavior::isolated : SplitBehavior::contiguous));
}

Made create_punctuation(const Component& component) {
  OPTIMA_ASSIGN(const SplitBehavior behavior, behavior_of(component));
  return Made(std::make_unique<ClassSplit>(is_punctuation, behavior));
}

Made create_whitespace_split(const Component&) {
  return Made(std::make_unique<ClassSplit>(is_space, SplitBehavior::removed));
}

Made create_bert(const Component&) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  steps.push_back(std::make_unique<ClassSplit>(is_space, SplitBehavior::removed));
  steps.push_back(std::make_unique<ClassSplit>(is_punctuation, SplitBehavior::isolated));
  return Made(std::make_unique<Sequence>(std::move(steps)));
}

Made create_whitespace(const Component&) {
  return Made(std::make_unique<Whitespace>());
}

}  // namespace

Made split_isolated(std::string_view regex, Dialect dialect) {
  OPTIMA_ASSIGN(auto pattern, Pattern::of_regex(regex, dialect));
  return Made(std::make_unique<Split>(std::move(pattern), SplitBehavior::isolated,
                                      Split::Meaning::matches));
}

Made PreTokenizer::create(const Component& component, int nesting) {
  struct Row {
    std::string_view type;
    Made (*create)(const Component& component);
  };
  constexpr Row kRows[] = {
      {"ByteLevel", create_byte_level},
      {"Split", Split::create},
      {"Digits", create_digits},
      {"Metaspace", Metaspace::create},
      {"Punctuation", create_punctuation},
      {"Whitespace", create_whitespace},
      {"WhitespaceSplit", create_whitespace_split},
      {"BertPreTokenizer", create_bert},
  };
  OPTIMA_ASSIGN(const std::string_view type, component.type());
  if (type == "Sequence") return Sequence::create(component, nesting);
  for (const Row& row : kRows) {
    if (row.type == type) return row.create(component);
  }
  return component.unsupported("pre-tokeniser", type);
}

}  // namespace optima::tokenizer::hf
