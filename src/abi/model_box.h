// What the model functions share.
#pragma once

#include "abi/handle.h"

namespace optima::abi {

// The model's tokenizer, or why the file has none that is supported.
Result<const tokenizer::Tokenizer*> tokenizer_of(const ModelBox& box);

}  // namespace optima::abi
