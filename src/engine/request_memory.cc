// What a request needs of KV memory, and how it lets go of it. See request_impl.h for which thread
// may call what.
#include <algorithm>

#include "base/text.h"
#include "engine/request_impl.h"

namespace optima::engine {

// Tokens whose KV is needed to begin: those that are there, and of what follows a page at most.
int64_t RequestImpl::tokens_to_begin(int64_t tokens) const {
  if (pooler_ || spec_.prompt_only) return tokens;
  const auto output = static_cast<int64_t>(result_.tokens.size());
  const int64_t left = spec_.max_tokens > 0 ? spec_.max_tokens - output : kv::kPageTokens;
  return std::min(tokens + std::min(left, kv::kPageTokens), session_->context_tokens());
}

int64_t RequestImpl::bytes_missing() const {
  const kv::PageTable& table = session_->table_;
  const int64_t tokens = tokens_to_begin(static_cast<int64_t>(session_->tokens_.size()));
  const int64_t wanted = table.bytes_needed(tokens, chunk_for(pending_tokens()));
  return std::max<int64_t>(0, wanted - table.bytes_held());
}

// The next token alone, when there is no more memory than for that.
bool RequestImpl::fits_barely(int64_t bytes_free) const {
  const kv::PageTable& table = session_->table_;
  const auto tokens = static_cast<int64_t>(session_->tokens_.size());
  return table.bytes_needed(tokens, chunk_for(pending_tokens())) - table.bytes_held() <= bytes_free;
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

// ---- a context that shifts ----

int64_t RequestImpl::shift_keep() const {
  return spec_.shift_keep_tokens > 0 ? spec_.shift_keep_tokens : kShiftKeepTokens;
}

Status RequestImpl::check_shift() const {
  const int64_t keep = spec_.shift_keep_tokens;
  if (keep != 0 && !spec_.context_shift)
    return Status(Code::invalid_argument,
                  text("shift_keep_tokens is ", keep, ", but the context is not to shift"));
  if (!spec_.context_shift) return {};
  const int64_t most = session_->context_tokens() - 2;  // one to drop, one to come
  if (keep < 0 || shift_keep() > most)
    return Status(Code::invalid_argument,
                  text("a context of ", session_->context_tokens(),
                       " tokens cannot shift and keep ", shift_keep(), ", wanted 0 to ", most),
                  {keep, -1, most});
  if (!spec_.logits_positions.empty())
    return Status(Code::invalid_argument,
                  "logits positions have no meaning in a context that shifts");
  return {};
}

// Tokens of the session that make way for an appended prompt: none when all fit or cannot.
int64_t RequestImpl::shift_for_prompt() const {
  if (!spec_.context_shift || spec_.prompt_mode != PromptMode::append) return 0;
  const auto held = static_cast<int64_t>(session_->tokens_.size());
  const int64_t excess = held + static_cast<int64_t>(prompt_.size()) - session_->context_tokens();
  const int64_t most = held - shift_keep();
  return excess <= 0 || excess > most ? 0 : std::max(excess, most / 2);
}

// So many tokens after those that are kept. Keys are stored rotated by their position, so that what
// follows is computed again. Returns how many.
int64_t RequestImpl::drop_oldest(int64_t tokens) {
  if (tokens == 0) return 0;
  SessionImpl& s = *session_;
  const auto begin = s.tokens_.begin() + shift_keep();
  s.tokens_.erase(begin, begin + tokens);
  s.table_.truncate(s.table_.reusable(std::min(s.table_.length(), shift_keep())));
  chosen_has_kv_ = false;
  spill_.length = 0;  // what was written out is of other tokens
  return tokens;
}

void RequestImpl::shift_context() {
  const auto total = static_cast<int64_t>(session_->tokens_.size());
  if (!spec_.context_shift || total < session_->context_tokens()) return;
  result_.counters.shifted_tokens += drop_oldest(std::max<int64_t>(1, (total - shift_keep()) / 2));
}

void RequestImpl::stop_running() {
  session_->table_.abort();  // what is there of chosen tokens
  give_up_draft_model();
  running_ = false;
  chosen_has_kv_ = false;
}

}  // namespace optima::engine
