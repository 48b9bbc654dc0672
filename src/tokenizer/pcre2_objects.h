// PCRE2's objects with owners.
#pragma once

#include <pcre2.h>

#include <memory>

namespace optima::tokenizer {

struct PatternCodeFree {
  void operator()(pcre2_code* code) const {
    pcre2_code_free(code);
    // PCRE2 keeps a block of executable memory for later patterns. It is linked into this library,
    // so a host that unloads the library would lose the block each time.
    pcre2_jit_free_unused_memory(nullptr);
  }
};
struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct CompileContextFree {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

using PatternCode = std::unique_ptr<pcre2_code, PatternCodeFree>;
using MatchData = std::unique_ptr<pcre2_match_data, MatchDataFree>;
using MatchContext = std::unique_ptr<pcre2_match_context, MatchContextFree>;
using CompileContext = std::unique_ptr<pcre2_compile_context, CompileContextFree>;

}  // namespace optima::tokenizer
