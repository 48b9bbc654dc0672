// PCRE2 counts the steps of one match; a text has as many matches as characters, so that the sum
// is bounded by processor time on top. Compiled patterns run on a stack of 32 KB; a match that
// needs more is done again by the interpreter, which has the heap.
#include "tokenizer/hf/regex.h"

#include <time.h>

#include "base/text.h"
#include "tokenizer/pcre2_objects.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer::hf {
namespace {

constexpr uint32_t kMatchSteps = 20'000'000;  // some tenths of a second
constexpr uint32_t kHeapKib = 64 * 1024;
constexpr uint32_t kNestingMax = 200;
constexpr int64_t kBudgetNs = 4'000'000'000;
constexpr int64_t kBudgetNsPerByte = 20'000;  // honest patterns take some tens

int64_t thread_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

struct Regex::Code {
  PatternCode code;
  std::string pattern;
};

Regex::~Regex() = default;

TimeBudget::TimeBudget(size_t text_bytes)
    : end_ns_(thread_time_ns() + kBudgetNs + kBudgetNsPerByte * static_cast<int64_t>(text_bytes)) {}

bool TimeBudget::spent() {
  return ++calls_ % 32 == 0 && thread_time_ns() > end_ns_;
}

Result<std::unique_ptr<Regex>> Regex::create(std::string_view pattern, Dialect dialect) {
  OPTIMA_ASSIGN(const std::string translated, translate_pattern(pattern, dialect));
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) return Status(optima::Code::oom_host, "no memory for a pattern");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kNestingMax);
  int error = 0;
  PCRE2_SIZE at = 0;
  std::unique_ptr<Regex> made(new Regex);
  made->code_ = std::make_unique<Code>();
  made->code_->pattern = pattern;
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY |
                           (dialect == Dialect::oniguruma ? PCRE2_MULTILINE : 0);
  made->code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                        translated.size(), options, &error, &at, context.get()));
  if (!made->code_->code) {
    char reason[128] = "";
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(reason), sizeof reason);
    return Status(optima::Code::unsupported, text("pattern '", pattern, "': ", reason));
  }
  // A host may forbid executable memory; pcre2_match() then interprets the same code.
  static_cast<void>(pcre2_jit_compile(made->code_->code.get(), PCRE2_JIT_COMPLETE));
  return made;
}

Status Regex::find_all(std::string_view piece, TimeBudget& budget,
                       std::vector<Range>& matches) const {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  if (!data || !context) return Status(optima::Code::oom_host, "no memory for matching a pattern");
  pcre2_set_match_limit(context.get(), kMatchSteps);
  pcre2_set_heap_limit(context.get(), kHeapKib);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  size_t last_end = SIZE_MAX;
  for (size_t at = 0; at <= piece.size();) {
    const auto match = [&](uint32_t options) {
      return pcre2_match(code_->code.get(), subject, piece.size(), at, PCRE2_NO_UTF_CHECK | options,
                         data.get(), context.get());
    };
    int found = match(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0 || budget.spent()) {
      return Status(optima::Code::format,
                    text("pattern '", code_->pattern, "' takes too long at byte ", at, " of ",
                         piece.size(), found < 0 ? text(" (PCRE2 error ", found, ")") : ""));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    if (range[0] > range[1]) {
      return Status(optima::Code::unsupported,
                    text("pattern '", code_->pattern, "': a match that ends before it begins"));
    }
    if (range[0] == range[1] && range[1] == last_end) {
      if (at >= piece.size()) break;
      at += utf8_step(piece, at).bytes;
      continue;
    }
    matches.push_back({range[0], range[1]});
    at = last_end = range[1];
  }
  return {};
}

}  // namespace optima::tokenizer::hf
