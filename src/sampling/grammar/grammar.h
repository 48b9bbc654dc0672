// Structured output: a grammar in one of four languages, compiled against a vocabulary into one
// pushdown automaton over bytes. A Grammar is immutable to its users and may be shared by any
// requests and threads; what was learnt of it (states, masks) is kept inside and shared. A
// GrammarState is one request's place in it.
//
// How the engine uses it, for each step of a request:
//   OPTIMA_ASSIGN(std::shared_ptr<const TokenMask> mask, state.mask());
//   mask->apply(logits);           before the sampler: the sampler's chain then sees -inf
//   ... sample ...
//   OPTIMA_TRY(state.accept(pick.token));
// and ends the request when state.is_finished() or when an end token was picked.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "sampling/grammar/program.h"
#include "sampling/grammar/token_table.h"

namespace optima::sampling {

enum class GrammarKind : uint8_t {
  json,         // any JSON value; the text is not looked at
  json_schema,  // schema.h has the subset
  gbnf,         // gbnf.h
  regex,        // the whole output matches; regex.h has the subset
};

struct GrammarSource {
  GrammarKind kind = GrammarKind::json;
  std::string_view text;  // need not outlive compile()
};

class Grammar {
 public:
  // Fails with invalid_argument for a text that is wrong, with unsupported (naming the place) for
  // one that asks what cannot be honoured or costs more than the limits.
  static Result<std::shared_ptr<const Grammar>> compile(const GrammarSource& source,
                                                        std::shared_ptr<const TokenTable> tokens,
                                                        const grammar::Limits& limits = {});
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  const TokenTable& tokens() const { return *tokens_; }
  int64_t state_count() const { return static_cast<int64_t>(program_.states.size()); }

 private:
  friend class GrammarState;
  struct Cache;
  Grammar(grammar::Program program, std::shared_ptr<const TokenTable> tokens,
          const grammar::Limits& limits);
  // The cache to use now: a new one when the last has grown past its limit. What still refers to
  // an old one keeps it.
  std::shared_ptr<Cache> cache() const;

  struct Shared;
  const grammar::Program program_;
  const std::shared_ptr<const TokenTable> tokens_;
  const grammar::Limits limits_;
  const std::unique_ptr<Shared> shared_;
};

// Copying is cheap and gives a second place in the same grammar (several samples, rejected drafts).
// One GrammarState is used by one thread at a time.
class GrammarState {
 public:
  explicit GrammarState(std::shared_ptr<const Grammar> grammar);

  // The tokens that may come next; never empty: when no token continues the text and it may not end
  // either, an error (invalid_state). After an end token: invalid_state.
  Result<std::shared_ptr<const TokenMask>> mask();
  // Fails with invalid_argument, and changes nothing, for a token that mask() does not allow.
  Status accept(int32_t token);
  // The same for text that is no token of its own, such as the start of an answer given by the
  // host. Fails at the first byte that cannot come, naming its offset; nothing is changed then.
  Status accept_text(std::string_view bytes);
  // Whether the text so far is complete. After an end token too.
  bool can_end() const { return ended_ || can_end_; }
  // The fewest bytes after which the text is complete, to tell when a request that runs out of
  // tokens should be led to its end. Linear in the depth of the text; the first call looks at the
  // grammar.
  int64_t bytes_to_end();
  // Complete, and nothing can follow: only an end token may.
  bool is_finished() const { return ended_ || finished_; }

 private:
  void refresh();
  Status move_to(std::string_view bytes, std::string_view what);

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<Grammar::Cache> cache_;
  uint32_t set_ = 0;
  Status failure_;  // of the start; given by every call
  bool can_end_ = false, finished_ = false, ended_ = false;
};

}  // namespace optima::sampling
