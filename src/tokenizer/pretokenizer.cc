// Runs the patterns of a family with PCRE2. The subject is checked to be valid UTF-8 once, by
// pattern_subject(); PCRE2's own check would run again at every match and make the whole
// quadratic. Each pattern sees one piece at a time as its whole subject, so that a look-ahead at
// the end of a piece finds the end of the text, as it does in the tokenizers we must equal.
#include "tokenizer/pretokenizer.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"
#include "tokenizer/character_classes.h"
#include "tokenizer/hf/unicode.h"
#include "tokenizer/pcre2_objects.h"

namespace optima::tokenizer {
namespace {

// PCRE2 counts steps of backtracking per match. The longest honest match walks a run of spaces
// forth and back a few times; the rest is head room, and the limit grows with the text because
// every text must have its ids.
constexpr uint64_t kMatchStepsPerByte = 16;
constexpr uint64_t kMatchStepsMin = 10'000'000;

uint32_t match_limit_for(size_t text_bytes) {
  const uint64_t limit = kMatchStepsMin + kMatchStepsPerByte * text_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(limit, UINT32_MAX));
}

// The ends of the runs of punctuation and of what lies between.
std::vector<size_t> punctuation_runs(std::string_view text) {
  std::vector<size_t> ends;
  size_t at = 0;
  bool before = false;
  hf::for_each_code_point(text, [&](char32_t value, std::string_view bytes) {
    const bool here = hf::in_class(hf::CodePointClass::punctuation, value);
    if (at > 0 && here != before) ends.push_back(at);
    before = here;
    at += bytes.size();
  });
  ends.push_back(at);
  return ends;
}

// What one split() needs beside the compiled patterns.
struct Scratch {
  MatchData data;
  MatchContext context;
};

}  // namespace

class Pretokenizer::Pattern {
 public:
  static Result<std::unique_ptr<Pattern>> create(std::string_view pattern, PatternEngine engine) {
    int error = 0;
    PCRE2_SIZE at = 0;
    auto made = std::make_unique<Pattern>();
    made->code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                    PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
    if (!made->code_) {
      return Status(Code::internal, text("pre-tokeniser pattern: PCRE2 error ", error, " at byte ",
                                         at, " of ", pattern.size()));
    }
    // A host may forbid executable memory; pcre2_match() then interprets the same code.
    if (engine == PatternEngine::compiled) {
      static_cast<void>(pcre2_jit_compile(made->code_.get(), PCRE2_JIT_COMPLETE));
    }
    return made;
  }

  // Appends the ends of the pieces of subject[begin, end).
  Status split(std::string_view subject, size_t begin, size_t end, const Scratch& scratch,
               std::vector<size_t>& ends) const {
    const auto* piece = reinterpret_cast<PCRE2_SPTR>(subject.data() + begin);
    const size_t bytes = end - begin;
    for (size_t at = 0; at < bytes;) {
      const int found =
          pcre2_match(code_.get(), piece, bytes, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                      scratch.data.get(), scratch.context.get());
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        return Status(Code::internal, text("pre-tokeniser: PCRE2 error ", found, " at byte ",
                                           begin + at, " of ", subject.size()));
      }
      const PCRE2_SIZE* match = pcre2_get_ovector_pointer(scratch.data.get());
      if (match[0] > at) ends.push_back(begin + match[0]);
      ends.push_back(begin + match[1]);
      at = match[1];
    }
    if (ends.empty() || ends.back() < end) ends.push_back(end);
    return Status();
  }

 private:
  PatternCode code_;
};

Pretokenizer::~Pretokenizer() = default;

Result<std::unique_ptr<Pretokenizer>> Pretokenizer::create(const PretokenizerFamily& family,
                                                           PatternEngine engine) {
  std::unique_ptr<Pretokenizer> made(new Pretokenizer);
  made->punctuation_ = family.punctuation;
  for (const std::string_view pattern : family.patterns) {
    if (pattern.empty()) continue;
    OPTIMA_ASSIGN(auto compiled, Pattern::create(pattern, engine));
    made->patterns_.push_back(std::move(compiled));
  }
  return made;
}

Result<std::vector<size_t>> Pretokenizer::split(std::string_view input) const {
  std::vector<size_t> ends;
  if (input.empty()) return ends;
  const std::optional<std::string> copy = pattern_subject(input);
  const std::string_view subject = copy ? std::string_view(*copy) : input;
  const Scratch scratch{MatchData(pcre2_match_data_create(1, nullptr)),
                        MatchContext(pcre2_match_context_create(nullptr))};
  if (!scratch.data || !scratch.context) {
    return Status(Code::oom_host, "pre-tokeniser: no memory for PCRE2's match data");
  }
  pcre2_set_match_limit(scratch.context.get(), match_limit_for(subject.size()));
  if (punctuation_ == Punctuation::apart) {
    ends = punctuation_runs(input);
  } else {
    ends.push_back(subject.size());
  }
  for (const std::unique_ptr<Pattern>& pattern : patterns_) {
    std::vector<size_t> finer;
    finer.reserve(subject.size() / 4 + 1);
    size_t begin = 0;
    for (const size_t end : ends) {
      OPTIMA_TRY(pattern->split(subject, begin, end, scratch, finer));
      begin = end;
    }
    ends.swap(finer);
  }
  return ends;
}

}  // namespace optima::tokenizer
