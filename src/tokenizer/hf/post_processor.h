// The post-processors of tokenizer.json: which ids go before and after those of a text.
#pragma once

#include <vector>

#include "tokenizer/hf/json_fields.h"

namespace optima::tokenizer::hf {

struct Template {
  std::vector<int32_t> before, after;
};

// Of "post_processor"; null = nothing is added.
Result<Template> read_post_processor(const json::Value* value);

}  // namespace optima::tokenizer::hf
