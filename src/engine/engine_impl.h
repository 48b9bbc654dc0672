// The engine behind engine.h. One thread at a time takes turns: the library's own (Drive::library)
// or whichever host thread is inside step() or generate() (Drive::host).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "engine/batch.h"
#include "engine/engine.h"
#include "engine/event_queue.h"
#include "engine/hub.h"
#include "engine/request_impl.h"
#include "scheduler/memory.h"
#include "scheduler/queue.h"

namespace optima::engine {

// How often the engine audits its KV pages by itself; 0 = never.
#ifdef NDEBUG
inline constexpr uint64_t kAuditTurns = 0;
#else
inline constexpr uint64_t kAuditTurns = 64;
#endif

class EngineImpl final : public Engine, public std::enable_shared_from_this<EngineImpl> {
 public:
  EngineImpl(const EngineOptions& options, const kv::PoolLimits& kv,
             std::unique_ptr<ThreadPool> pool);
  ~EngineImpl() override;

  Result<std::shared_ptr<Model>> load(const model::Source& source,
                                      const LoadOptions& options) override;
  Result<std::shared_ptr<Session>> create_session(const std::shared_ptr<Model>& model,
                                                  const SessionOptions& options) override;
  Result<std::shared_ptr<Session>> restore(const std::shared_ptr<Model>& model,
                                           const SessionOptions& options,
                                           const kv::SnapshotRead& read) override;
  Result<std::shared_ptr<Request>> submit(const std::shared_ptr<Session>& session,
                                          RequestSpec spec) override;
  Result<std::shared_ptr<Request>> generate(
      const std::shared_ptr<Session>& session, RequestSpec spec,
      const std::function<Verdict(const Event&)>& on_event) override;
  Result<std::vector<std::shared_ptr<Request>>> run_all(const std::shared_ptr<Session>& session,
                                                        std::vector<RequestSpec> specs) override;
  std::vector<Event> poll(size_t events_max, int64_t timeout_ms) override;
  Result<int> wakeup_fd() override;
  Result<bool> step() override;
  void close() override;
  MemoryUse memory() const override;
  Metrics metrics() const override;
  kv::AuditReport audit_kv() override;
  Result<kv::KvEventsTaken> take_kv_events(std::span<kv::KvEvent> out) override;
  int threads() const override { return pool_->size(); }

 private:
  using Sessions = std::vector<std::shared_ptr<SessionImpl>>;
  // Shared with the driving thread, which must not touch the engine once it says stop.
  struct DriverToken {
    std::atomic<bool> stop{false};
  };

  Result<std::shared_ptr<RequestImpl>> make_request(const std::shared_ptr<Session>& session,
                                                    RequestSpec spec, Delivery delivery);
  // All of them, or none: busy when the queue has no room for them.
  Status enqueue(std::span<const std::shared_ptr<RequestImpl>> requests);
  int64_t waiting() const;  // requests that have not begun or were preempted
  Result<std::shared_ptr<SessionImpl>> make_session(const std::shared_ptr<Model>& model,
                                                    const SessionOptions& options);
  Result<std::shared_ptr<SessionImpl>> create_draft_session(const ModelImpl& model,
                                                            const SessionOptions& options);
  Status start_driver();
  static void drive(EngineImpl* engine, std::shared_ptr<DriverToken> token);
  void wait_for_work();
  bool has_work() const;

  // ---- one turn; exclusive ----
  bool turn(Sessions& released);
  bool turn_for_host();  // turn() on a host thread; false = nothing to do
  ModelRunner* choose_batch(TimePoint now, Sessions& released);
  void ask_draft_models();
  void guess_drafts();
  void schedule(ModelRunner* runner, TimePoint now, Sessions& released);
  int64_t collect(ModelRunner* runner);
  void fill_batch(TimePoint time, Sessions& released);
  void forward(ModelRunner* runner, Sessions& released);
  Status score(ModelRunner* runner, const graph::Batch& batch);
  void count_batch(ModelRunner& runner, TimePoint begin, TimePoint end);
  void retire(RequestImpl& request, FinishReason reason, Status status, TimePoint now,
              Sessions& released);
  bool interrupted_in_batch() const;
  bool publish_ready(TimePoint time, Sessions& released);

  // ---- memory, part of the turn: admission.cc ----
  void admit(TimePoint time, Sessions& released);
  scheduler::Memory memory_left() const;
  bool awaits_prefix(const RequestImpl& request) const;
  bool others_hold_pages(const RequestImpl& request) const;
  static bool reads_back_spill(RequestImpl& request);
  enum class Source : uint8_t { tokens, spill };  // of its KV
  void begin(RequestImpl& request, Source source);
  enum class Room : uint8_t { none, made, later };  // later: when it has been written out
  Room make_room(const RequestImpl& request);
  bool give_up_draft_models();
  void preempt(RequestImpl& request);
  Status reserve(RequestImpl& request, int64_t tokens);
  void yield(RequestImpl& request, Status status, TimePoint time, Sessions& released);

  // ---- preempted KV at the host's, part of the turn: spill.cc ----
  bool move_spills(std::unique_lock<std::mutex>& lock);
  void discard_spills(std::unique_lock<std::mutex>& lock);
  void spill(RequestImpl& request, std::unique_lock<std::mutex>& lock);
  bool unspill(RequestImpl& request, std::unique_lock<std::mutex>& lock);
  void fail_spill(const Status& status, std::unique_lock<std::mutex>& lock);

  // ---- generate() ----
  Result<std::shared_ptr<Request>> run_blocking(
      const std::shared_ptr<RequestImpl>& request,
      const std::function<Verdict(const Event&)>& on_event);
  bool called_back_on_this_thread() const;
  int64_t tokens_in_flight(const kv::PageTable& table) const;
  void log(LogLevel level, std::string_view message) const {
    if (options_.log) options_.log(level, message);
  }

  std::shared_ptr<Hub> hub_;
  EngineOptions options_;
  Allocator allocator_;
  std::unique_ptr<ThreadPool> pool_;
  std::shared_ptr<kv::PagePool> pages_;
  std::mutex turn_mutex_;
  std::thread driver_;
  std::shared_ptr<DriverToken> token_ = std::make_shared<DriverToken>();

  // Under the hub's lock.
  std::vector<std::shared_ptr<RequestImpl>> active_;  // in order of arrival
  EventQueue queue_;
  std::vector<std::thread::id> in_callback_;
  std::vector<std::weak_ptr<ModelImpl>> models_;
  bool closed_ = false;
  bool stalled_ = false;  // the last turn found requests, but no memory for them

  // Of the turn. The batch changes under the hub's lock, and is empty when none is computed.
  PackedBatch batch_;
  uint64_t turns_ = 0;
  TimePoint turn_begin_{};
  double turn_compute_s_ = 0;
  std::vector<DraftTask> draft_tasks_;
  std::vector<scheduler::Candidate> candidates_;
  std::vector<RequestImpl*> order_;  // who could run, first ones first
  std::vector<scheduler::Slot> slots_, by_rank_;
  std::vector<scheduler::Holder> holders_;
  std::vector<RequestImpl*> spills_, unspills_;  // to be moved at the end of the turn
  std::vector<uint64_t> discards_;
  uint64_t spilled_ = 0;
  std::vector<ModelRunner*> runners_;
  size_t next_runner_ = 0;
  uint64_t batch_number_ = 0;
};

}  // namespace optima::engine
