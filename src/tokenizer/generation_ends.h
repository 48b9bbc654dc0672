// The tokens by which models end their answer, known by their names.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

// Sets ends[id] of those that the vocabulary has; ends has one entry per token.
void mark_known_ends(const Tokenizer& tokenizer, std::vector<uint8_t>& ends);

}  // namespace optima::tokenizer
