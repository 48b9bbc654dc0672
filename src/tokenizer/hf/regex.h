// A pattern of a tokenizer.json, compiled; finds all its matches in a text, bounded in time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/hf/regex_translate.h"

namespace optima::tokenizer::hf {

struct Range {
  size_t begin, end;
};

// How long the matching of one text may take in all, in processor time of the calling thread.
class TimeBudget {
 public:
  explicit TimeBudget(size_t text_bytes);
  bool spent();  // asks the clock at every 32nd call only

 private:
  int64_t end_ns_;
  uint32_t calls_ = 0;
};

// Immutable after creation; safe to use from any thread.
class Regex {
 public:
  static Result<std::unique_ptr<Regex>> create(std::string_view pattern, Dialect dialect);
  ~Regex();

  // Appends the matches in `piece`, ascending, not overlapping; an empty match is reported except
  // right after another match. `piece` is a text as pattern_subject() makes it, or a part of it
  // that begins and ends between characters. Fails with `format` when a match takes too long.
  Status find_all(std::string_view piece, TimeBudget& budget, std::vector<Range>& matches) const;

 private:
  struct Code;
  Regex() = default;
  std::unique_ptr<Code> code_;
};

}  // namespace optima::tokenizer::hf
