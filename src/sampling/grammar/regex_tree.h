// A parsed regular expression.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "sampling/grammar/code_points.h"
#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

struct RegexNode {
  enum class Kind : uint8_t { sequence, choice, set, repeat, text_start, text_end };
  Kind kind = Kind::sequence;
  std::vector<RegexNode> parts;  // of sequence, choice; the one repeated
  CodePointSet set;
  int64_t min = 0, max = 0;  // of repeat; kUnlimited
};

Result<RegexNode> parse_regex(std::string_view pattern, int64_t nesting_max);

}  // namespace optima::sampling::grammar
