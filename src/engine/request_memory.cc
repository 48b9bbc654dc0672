// What a request needs of KV memory, and how it lets go of it. See request_impl.h for which thread
// may call what.
#include <algorithm>

#include "base/text.h"
#include "engine/request_impl.h"

namespace optima::engine {

// Tokens whose KV is needed to begin: those that are there, and a page for the answer.
int64_t RequestImpl::tokens_to_begin(int64_t tokens) const {
  const int64_t answer = pooler_ || spec_.prompt_only ? 0 : kv::kPageTokens;
  return std::min(tokens + answer, session_->context_tokens());
}

int64_t RequestImpl::bytes_missing() const {
  const kv::PageTable& table = session_->table_;
  const int64_t tokens = tokens_to_begin(static_cast<int64_t>(session_->tokens_.size()));
  const int64_t wanted = table.bytes_needed(tokens, chunk_for(pending_tokens()));
  return std::max<int64_t>(0, wanted - table.bytes_held());
}

// The most that is computed at once of so many tokens.
int64_t RequestImpl::chunk_for(int64_t tokens) const {
  return std::clamp<int64_t>(tokens, 1, session_->chunk_tokens());
}

// Whether it fits when nobody else holds anything.
Status RequestImpl::check_memory() const {
  const kv::PoolCounts of = session_->runner().pages->counts();
  const int64_t tokens = tokens_to_begin(tokens_wanted());
  const int64_t wanted = session_->table_.bytes_needed(tokens, chunk_for(tokens));
  return wanted - of.bytes_held <= of.bytes_free ? Status() : memory_error_of(tokens);
}

Status RequestImpl::memory_error() const {
  return memory_error_of(tokens_to_begin(static_cast<int64_t>(session_->tokens_.size())));
}

// In pages of the mean size of those that it needs.
Status RequestImpl::memory_error_of(int64_t tokens) const {
  const kv::PoolCounts of = session_->runner().pages->counts();
  const kv::PageTable& table = session_->table_;
  const int64_t bytes = table.bytes_needed(tokens, chunk_for(tokens));
  const int64_t pages = table.pages_needed(tokens, chunk_for(tokens));
  const int64_t page_bytes = std::max<int64_t>(1, bytes / std::max<int64_t>(1, pages));
  return Status(Code::oom_host,
                text("the KV of ", tokens, " tokens, prompt and begin of the answer, needs ", pages,
                     " pages, ", bytes, " bytes: ", of.bytes_free, " bytes are free, ",
                     of.bytes_held, " held, the budget is ", of.bytes_budget),
                {pages, of.bytes_free / page_bytes, of.bytes_budget / page_bytes});
}

// Its tokens and what was chosen after them stay: all of the KV can be computed again.
void RequestImpl::preempt() {
  session_->drop_kv();
  give_up_draft_model();
  running_ = false;
  chosen_has_kv_ = false;
}

}  // namespace optima::engine
