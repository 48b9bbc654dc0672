// See session_impl.h.
#include "engine/session_impl.h"

#include <algorithm>

#include "base/text.h"
#include "engine/request_impl.h"

namespace optima::engine {

SessionImpl::SessionImpl(std::shared_ptr<Hub> hub, std::shared_ptr<ModelImpl> model,
                         ModelRunner* runner, const SessionOptions& options)
    : hub_(std::move(hub)),
      model_(std::move(model)),
      model_base_(model_),
      runner_(runner),
      options_(options),
      context_tokens_(options.context_tokens > 0 ? options.context_tokens
                                                 : model_->config()->context_length),
      chunk_tokens_(options.prefill_chunk_tokens > 0
                        ? std::min(options.prefill_chunk_tokens, kBatchTokensMax)
                        : kBatchTokensMax),
      table_(*runner->pages, runner->layout.groups) {}

std::vector<int32_t> SessionImpl::tokens() const {
  const std::lock_guard lock(hub_->mutex);
  return tokens_;
}

Status SessionImpl::truncate(int64_t tokens) {
  if (tokens < 0)
    return Status(Code::invalid_argument, text(tokens, " tokens to keep, wanted >= 0"));
  const std::lock_guard lock(hub_->mutex);
  if (busy_with_ != nullptr) return Status(Code::busy, "the session runs a request");
  tokens_.resize(static_cast<size_t>(std::min(tokens, static_cast<int64_t>(tokens_.size()))));
  table_.truncate(table_.reusable(std::min(table_.length(), tokens)));
  return {};
}

Result<std::shared_ptr<Session>> SessionImpl::fork() const {
  const std::lock_guard lock(hub_->mutex);
  if (closed_ || model_->closed())
    return Status(Code::invalid_state, "the session or its model was destroyed");
  if (busy_with_ != nullptr) return Status(Code::busy, "the session runs a request");
  auto out = std::make_shared<SessionImpl>(hub_, model_, runner_, options_);
  out->tokens_ = tokens_;
  out->table_ = table_.fork();
  return std::shared_ptr<Session>(std::move(out));
}

void SessionImpl::close() {
  const std::lock_guard lock(hub_->mutex);
  closed_ = true;
  if (busy_with_ != nullptr) busy_with_->cancel();
  hub_->work.notify_all();
}

}  // namespace optima::engine
