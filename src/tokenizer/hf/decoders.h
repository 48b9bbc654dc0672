// The decoders of tokenizer.json: the text of a sequence of tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/hf/json_fields.h"

namespace optima::tokenizer::hf {

// Where the tokens stand: `whole` are all of a sequence, `middle` some of one that goes on at both
// ends (then nothing is stripped or left out that belongs to the ends alone).
enum class Extent : uint8_t { whole, middle };

// Immutable after creation; safe to use from any thread.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual Status apply(std::vector<std::string>& tokens, Extent extent) const = 0;

  // Of "decoder"; null = the tokens joined by spaces. Fails with `unsupported` naming a type that
  // is not known.
  static Result<std::unique_ptr<Decoder>> create(const json::Value* value);
};

// Tokens one after the other, as they are.
std::unique_ptr<Decoder> create_concatenation();

}  // namespace optima::tokenizer::hf
