// See session_impl.h.
#include "engine/session_impl.h"

#include <algorithm>

#include "base/text.h"
#include "engine/request_impl.h"

namespace optima::engine {
namespace {

// What the rotary frequencies depend on beside the model: equal for sessions whose KV is equal.
uint64_t rotation_of(const model::ModelConfig& config, int64_t context_tokens) {
  uint64_t out = 0;
  for (const graph::RopeTable& table : config.ropes) {
    const bool longer = table.original_context > 0 && context_tokens > table.original_context;
    const auto kind = static_cast<uint64_t>(!longer ? 0 : table.stretch > 0 ? context_tokens : 1);
    out = out * 0x9E3779B97F4A7C15u + kind;
  }
  return out;
}

}  // namespace

SessionImpl::SessionImpl(std::shared_ptr<Hub> hub, std::shared_ptr<ModelImpl> model,
                         ModelRunner* runner, const SessionOptions& options,
                         std::shared_ptr<SessionImpl> draft)
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
      rotation_(rotation_of(*model_->config(), context_tokens_)),
      draft_(std::move(draft)),
      table_(*runner->pages, runner->layout.groups, runner->root ^ rotation_) {}

SessionImpl::~SessionImpl() {
  const std::lock_guard lock(hub_->mutex);
  std::erase(hub_->sessions, this);
}

void SessionImpl::enlist() {
  hub_->sessions.push_back(this);
  used_last_ = ++hub_->uses;
}

void SessionImpl::drop_kv() {
  table_.truncate(0);
  // What is computed from now on may be shared, wherever the KV before it came from.
  if (const auto root = runner_->root ^ rotation_; table_.root() != root)
    table_ = kv::PageTable(*runner_->pages, runner_->layout.groups, root);
}

Status SessionImpl::spill(uint64_t id, const kv::SnapshotWrite& write) const {
  const auto clear = [this](size_t group, int64_t from, unsigned char* page) {
    clear_positions(runner_->layout, group, from, page);
  };
  return kv::write_snapshot({id, static_cast<uint32_t>(runner_->layout.type), rotation_},
                            std::span(tokens_).first(static_cast<size_t>(table_.length())), table_,
                            clear, write);
}

Status SessionImpl::unspill(uint64_t id, const kv::SnapshotRead& read) {
  table_.truncate(0);
  // From a root of its own, as restore().
  table_ = kv::PageTable(*runner_->pages, runner_->layout.groups, runner_->pages->new_root());
  Result<std::vector<int32_t>> tokens =
      kv::read_snapshot({id, static_cast<uint32_t>(runner_->layout.type), rotation_},
                        {context_tokens_, static_cast<int32_t>(runner_->vocabulary)}, table_, read);
  if (!tokens.ok()) return tokens.take_status();
  if (std::equal(tokens->begin(), tokens->end(), tokens_.begin(),
                 tokens_.begin() + std::min(table_.length(), static_cast<int64_t>(tokens_.size()))))
    return {};
  return Status(Code::format, "what was read back is of other tokens");
}

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
  std::shared_ptr<SessionImpl> draft;
  if (draft_ != nullptr)
    draft = std::make_shared<SessionImpl>(hub_, draft_->model_, draft_->runner_, draft_->options_);
  // Before the lock, which its end would take.
  auto out = std::make_shared<SessionImpl>(hub_, model_, runner_, options_, std::move(draft));
  const std::lock_guard lock(hub_->mutex);
  if (closed_ || model_->closed())
    return Status(Code::invalid_state, "the session or its model was destroyed");
  if (busy_with_ != nullptr) return Status(Code::busy, "the session runs a request");
  out->enlist();
  out->tokens_ = tokens_;
  out->table_ = table_.fork();
  out->served_ = served_;  // or a fork would be a way to the front
  return std::shared_ptr<Session>(std::move(out));
}

kv::SnapshotIdentity SessionImpl::identity() const {
  return {model_->fingerprint(), static_cast<uint32_t>(runner_->layout.type), rotation_};
}

// The writer may be slow: it gets a fork, and nobody waits for it.
Status SessionImpl::save(const kv::SnapshotWrite& write) const {
  std::unique_lock lock(hub_->mutex);
  if (busy_with_ != nullptr) return Status(Code::busy, "the session runs a request");
  const std::vector<int32_t> tokens = tokens_;
  kv::PageTable table = table_.fork();
  const kv::TableList::Entry listed(hub_->tables, table);
  lock.unlock();
  const auto clear = [this](size_t group, int64_t from, unsigned char* page) {
    clear_positions(runner_->layout, group, from, page);
  };
  return kv::write_snapshot(identity(), tokens, table, clear, write);
}

int64_t SessionImpl::save_bytes() const {
  const std::lock_guard lock(hub_->mutex);
  return kv::snapshot_bytes(table_, static_cast<int64_t>(tokens_.size()));
}

SessionKv SessionImpl::kv() const {
  const std::lock_guard lock(hub_->mutex);
  return {table_.length(), table_.use(), table_.root()};
}

Status SessionImpl::restore(const kv::SnapshotRead& read) {
  // From a root of its own: what a file says of these tokens is nobody else's KV.
  kv::PageTable table(*runner_->pages, runner_->layout.groups, runner_->pages->new_root());
  const kv::TableList::Entry listed(hub_->tables, table);
  OPTIMA_ASSIGN(
      std::vector<int32_t> tokens,
      kv::read_snapshot(identity(), {context_tokens_, static_cast<int32_t>(runner_->vocabulary)},
                        table, read, &hub_->tables.mutex()));
  const std::lock_guard lock(hub_->mutex);
  tokens_ = std::move(tokens);
  table_ = std::move(table);
  return {};
}

void SessionImpl::close() {
  const std::lock_guard lock(hub_->mutex);
  closed_ = true;
  if (busy_with_ != nullptr) busy_with_->cancel();
  hub_->work.notify_all();
}

}  // namespace optima::engine
