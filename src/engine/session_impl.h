// A session: the tokens of one conversation and the pages that hold their KV. The pages cover a
// prefix of the tokens; what is missing is computed by the next request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/hub.h"
#include "engine/model_impl.h"
#include "kv/page_table.h"

namespace optima::engine {

class RequestImpl;

inline int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const auto limit = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return std::mismatch(a.begin(), a.begin() + limit, b.begin()).first - a.begin();
}

class SessionImpl final : public Session {
  // Before the table: its pages belong to the model's pool.
  std::shared_ptr<Hub> hub_;
  std::shared_ptr<ModelImpl> model_;
  std::shared_ptr<Model> model_base_;
  ModelRunner* runner_;
  SessionOptions options_;
  int64_t context_tokens_;
  int64_t chunk_tokens_;
  uint64_t rotation_;
  std::shared_ptr<SessionImpl> draft_;

  kv::SnapshotIdentity identity() const;

 public:
  // `draft`: a session of the draft model that nobody else has; null = none.
  SessionImpl(std::shared_ptr<Hub> hub, std::shared_ptr<ModelImpl> model, ModelRunner* runner,
              const SessionOptions& options, std::shared_ptr<SessionImpl> draft = nullptr);
  ~SessionImpl() override;
  // From now on the engine may take its KV while it is idle. Under the hub's lock.
  void enlist();

  const std::shared_ptr<Model>& model() const override { return model_base_; }
  int64_t context_tokens() const override { return context_tokens_; }
  SessionOutput output() const override { return options_.output; }
  std::vector<int32_t> tokens() const override;
  Status truncate(int64_t tokens) override;
  Result<std::shared_ptr<Session>> fork() const override;
  Status save(const kv::SnapshotWrite& write) const override;
  int64_t save_bytes() const override;
  SessionKv kv() const override;
  void close() override;
  // Of a new session that nobody else knows yet.
  Status restore(const kv::SnapshotRead& read);

  const SessionOptions& options() const { return options_; }
  ModelImpl& model_impl() const { return *model_; }
  ModelRunner& runner() const { return *runner_; }
  int64_t chunk_tokens() const { return chunk_tokens_; }
  SessionImpl* draft() const { return draft_.get(); }
  // An encoder's tokens see each other: a prompt is computed in one piece, and its KV is of no use
  // to another.
  bool encodes() const { return model_->config()->mask == kernels::AttentionMask::all; }
  int64_t prompt_tokens_max() const {
    return encodes() ? std::min(context_tokens_, chunk_tokens_) : context_tokens_;
  }

  // Gives back all pages: the tokens stay, and the next request computes their KV.
  void drop_kv();
  // Its KV under a number, and back. Under the hub's lock, which the functions may let go of: the
  // session must be busy.
  Status spill(uint64_t id, const kv::SnapshotWrite& write) const;
  Status unspill(uint64_t id, const kv::SnapshotRead& read);

  // Under the hub's lock; the request in `busy_with` alone changes tokens and table.
  std::vector<int32_t> tokens_;
  kv::PageTable table_;
  RequestImpl* busy_with_ = nullptr;
  int64_t served_ = 0;      // where it stands in the engine's fair share
  uint64_t used_last_ = 0;  // ascending with time, over all sessions of the engine
  bool closed_ = false;

 private:
  kv::TableList::Entry listed_{hub_->tables, table_};
};

}  // namespace optima::engine
