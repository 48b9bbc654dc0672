// The public face. Stacks and masks that were met are kept in a cache that all requests of a
// grammar share, under a mutex. A cache past its limit is replaced: states move their stacks over
// to the new one the next time they are used, and the last to leave frees the old one.
#include "sampling/grammar/grammar.h"

#include <mutex>
#include <optional>

#include "base/text.h"
#include "sampling/grammar/gbnf.h"
#include "sampling/grammar/json_rules.h"
#include "sampling/grammar/masks.h"
#include "sampling/grammar/regex.h"
#include "sampling/grammar/schema.h"
#include "sampling/grammar/stacks.h"

namespace optima::sampling {

using grammar::Builder;
using grammar::Limits;
using grammar::Program;
using grammar::StateId;

struct Grammar::Cache {
  Cache(const Program& program, const TokenTable& tokens, const Limits& limits)
      : stacks(program, limits), masks(stacks, tokens, limits) {}
  std::mutex mutex;
  grammar::Stacks stacks;
  grammar::Masks masks;
  int64_t memory_bytes() const { return stacks.memory_bytes() + masks.memory_bytes(); }
};

struct Grammar::Shared {
  std::mutex mutex;
  std::shared_ptr<Cache> current;
  std::once_flag measured;
  std::optional<grammar::Distances> distances;
};

namespace {

Result<Program> build(const GrammarSource& source, const Limits& limits) {
  const auto size = static_cast<int64_t>(source.text.size());
  if (source.kind != GrammarKind::json && size > limits.text_bytes)
    return Status(Code::unsupported,
                  text("a grammar of ", size, " bytes: at most ", limits.text_bytes),
                  {size, -1, limits.text_bytes});
  Builder builder(limits);
  StateId start = 0;
  switch (source.kind) {
    case GrammarKind::json:
      start = grammar::JsonRules(builder).document();
      break;
    case GrammarKind::json_schema: {
      OPTIMA_ASSIGN(start, grammar::compile_schema(source.text, builder));
      break;
    }
    case GrammarKind::gbnf: {
      OPTIMA_ASSIGN(start, grammar::compile_gbnf(source.text, builder));
      builder.inline_small_parts();
      break;
    }
    case GrammarKind::regex: {
      OPTIMA_ASSIGN(start, grammar::compile_regex(source.text, builder));
      break;
    }
  }
  return builder.finish(start);
}

}  // namespace

Result<std::shared_ptr<const Grammar>> Grammar::compile(const GrammarSource& source,
                                                        std::shared_ptr<const TokenTable> tokens,
                                                        const Limits& limits) {
  OPTIMA_ASSIGN(Program program, build(source, limits));
  return std::shared_ptr<const Grammar>(new Grammar(std::move(program), std::move(tokens), limits));
}

Grammar::Grammar(Program program, std::shared_ptr<const TokenTable> tokens, const Limits& limits)
    : program_(std::move(program)),
      tokens_(std::move(tokens)),
      limits_(limits),
      shared_(std::make_unique<Shared>()) {}

Grammar::~Grammar() = default;

std::shared_ptr<Grammar::Cache> Grammar::cache() const {
  const std::lock_guard lock(shared_->mutex);
  std::shared_ptr<Cache>& current = shared_->current;
  bool full = current == nullptr;
  if (!full) {
    const std::lock_guard in_use(current->mutex);
    full = current->memory_bytes() > limits_.cache_bytes;
  }
  if (full) current = std::make_shared<Cache>(program_, *tokens_, limits_);
  return current;
}

GrammarState::GrammarState(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), cache_(grammar_->cache()) {
  const std::lock_guard lock(cache_->mutex);
  set_ = cache_->stacks.start();
  failure_ = cache_->stacks.status();
  cache_->stacks.clear_status();
  can_end_ = cache_->stacks.has_bottom(set_);
  finished_ = can_end_ && cache_->stacks.entries(set_).size() == 1;
}

int64_t GrammarState::bytes_to_end() {
  if (ended_ || !failure_.ok()) return 0;
  Grammar::Shared& shared = *grammar_->shared_;
  std::call_once(shared.measured, [&] { shared.distances.emplace(grammar_->program_); });
  const std::lock_guard lock(cache_->mutex);
  return cache_->stacks.distance(set_, *shared.distances);
}

void GrammarState::refresh() {
  std::shared_ptr<Grammar::Cache> current = grammar_->cache();
  if (current == cache_) return;
  const std::scoped_lock lock(current->mutex, cache_->mutex);
  set_ = current->stacks.import(cache_->stacks, set_);
  cache_.swap(current);
}

Result<std::shared_ptr<const TokenMask>> GrammarState::mask() {
  OPTIMA_TRY(failure_);
  if (ended_) return Status(Code::invalid_state, "the text under the grammar has ended");
  refresh();
  const std::lock_guard lock(cache_->mutex);
  OPTIMA_ASSIGN(std::shared_ptr<const TokenMask> mask, cache_->masks.of(set_));
  if (mask->any()) return mask;
  return Status(Code::invalid_state,
                text("none of the ", grammar_->tokens().size(), " tokens can continue the text",
                     can_end_ ? ", which is complete, and there is no token that ends it"
                              : " under its grammar, and it is not complete"),
                {-1, 0, grammar_->tokens().size()});
}

Status GrammarState::accept(int32_t token) {
  OPTIMA_TRY(failure_);
  const TokenTable& tokens = grammar_->tokens();
  if (token < 0 || token >= tokens.size())
    return {Code::invalid_argument,
            text("token ", token, " of a vocabulary of ", tokens.size()),
            {token, -1, tokens.size()}};
  if (ended_) return {Code::invalid_state, "the text under the grammar has ended"};
  if (tokens.use(token) == TokenUse::end && can_end_) {
    ended_ = true;
    return {};
  }
  if (tokens.use(token) != TokenUse::text || tokens.bytes(token).empty())
    return {Code::invalid_argument,
            text("token ", token, " cannot come here: the grammar ",
                 tokens.use(token) == TokenUse::end ? "is not at an end"
                                                    : "allows no control and no empty token")};
  return move_to(tokens.bytes(token), text("token ", token));
}

Status GrammarState::accept_text(std::string_view bytes) {
  OPTIMA_TRY(failure_);
  if (ended_) return {Code::invalid_state, "the text under the grammar has ended"};
  return move_to(bytes, "the text");
}

Status GrammarState::move_to(std::string_view bytes, std::string_view what) {
  refresh();
  const std::lock_guard lock(cache_->mutex);
  grammar::Stacks& stacks = cache_->stacks;
  uint32_t set = set_;
  for (size_t i = 0; i < bytes.size(); ++i) {
    set = stacks.step(set, static_cast<uint8_t>(bytes[i]));
    if (set != 0) continue;
    if (!stacks.status().ok()) {
      Status status = stacks.status();
      stacks.clear_status();
      return status;
    }
    return {Code::invalid_argument,
            text(what, " is not what the grammar allows: byte ", i, " of ", bytes.size()),
            {static_cast<int64_t>(i), -1, static_cast<int64_t>(bytes.size())}};
  }
  set_ = set;
  can_end_ = stacks.has_bottom(set);
  finished_ = can_end_ && stacks.entries(set).size() == 1;
  return {};
}

}  // namespace optima::sampling
