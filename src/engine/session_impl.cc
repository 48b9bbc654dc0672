// See session_impl.h.
#include "engine/session_impl.h"

#include <algorithm>

#include "engine/request_impl.h"

namespace optima::engine {

SessionImpl::SessionImpl(std::shared_ptr<Hub> hub, std::shared_ptr<ModelImpl> model,
                         ModelRunner* runner, const SessionOptions& options)
    : hub_(std::move(hub)),
      model_(std::move(model)),
      model_base_(model_),
      runner_(runner),
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

Status SessionImpl::reset() {
  const std::lock_guard lock(hub_->mutex);
  if (busy_with_ != nullptr) return Status(Code::busy, "the session runs a request");
  tokens_.clear();
  table_.truncate(0);
  return {};
}

void SessionImpl::close() {
  const std::lock_guard lock(hub_->mutex);
  closed_ = true;
  if (busy_with_ != nullptr) busy_with_->cancel();
  hub_->work.notify_all();
}

}  // namespace optima::engine
