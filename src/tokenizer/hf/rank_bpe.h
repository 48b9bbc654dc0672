// BPE over bytes where a token's rank is its place in the file (tiktoken).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/hf/model.h"

namespace optima::tokenizer::hf {

// The id of tokens[rank] is rank + first_id. Every single byte must be a token.
Result<std::unique_ptr<Model>> create_rank_bpe(const std::vector<std::string>& tokens,
                                               int32_t first_id);

}  // namespace optima::tokenizer::hf
