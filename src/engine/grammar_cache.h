// Grammars compiled for one model's vocabulary. Compiling may take milliseconds and a grammar
// learns its token masks as it is used, so that the last few are kept for requests to come.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "engine/request.h"
#include "sampling/grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace optima::engine {

// Thread-safe.
class GrammarCache {
 public:
  // `vocabulary` counts logits; ids beyond the tokenizer's are never allowed.
  static Result<std::unique_ptr<GrammarCache>> create(const tokenizer::Tokenizer& tokenizer,
                                                      int32_t vocabulary);
  Result<std::shared_ptr<const sampling::Grammar>> get(const GrammarSpec& spec);

 private:
  struct Entry {
    GrammarSpec spec;
    std::shared_ptr<const sampling::Grammar> grammar;
  };
  explicit GrammarCache(std::shared_ptr<const sampling::TokenTable> tokens)
      : tokens_(std::move(tokens)) {}

  const std::shared_ptr<const sampling::TokenTable> tokens_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // last used first
};

}  // namespace optima::engine
