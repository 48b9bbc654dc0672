// The normalisers of tokenizer.json.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/pieces.h"

namespace optima::tokenizer::hf {

struct NormalizedText {
  std::string bytes;
  Start start;  // becomes `inside` when the first characters are deleted
};

// Immutable after creation; safe to use from any thread.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual Status apply(NormalizedText& text) const = 0;

  // Fails with `unsupported` naming a type or option that is not known.
  static Result<std::unique_ptr<Normalizer>> create(const Component& component, int nesting = 0);
};

// NFC by the newest tables: the packages that read tiktoken's files have Python's.
std::unique_ptr<Normalizer> create_nfc();

// SentencePiece's rules as a file has them (base64), in precompiled.cc.
Result<std::unique_ptr<Normalizer>> create_precompiled(const Component& component);

}  // namespace optima::tokenizer::hf
