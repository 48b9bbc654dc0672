// The engine: owns threads and memory, loads models, runs requests. One turn of it is step().
//
// Lifetime: engine <- model <- session <- request, held by shared_ptr; any may be let go at any
// time, also from inside its own callback; work in progress is cancelled and finished in order.
// All methods are safe from any thread unless they say otherwise. Nothing here throws but
// std::bad_alloc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/allocator.h"
#include "base/log.h"
#include "base/status.h"
#include "engine/metrics.h"
#include "engine/request.h"
#include "kv/audit.h"
#include "kv/snapshot.h"
#include "model/config.h"
#include "model/model_file.h"
#include "model/source.h"
#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace optima::engine {

// Who runs step(): a thread of the library (started with the first request), or the host.
enum class Drive : int32_t { library = 0, host = 1 };

inline constexpr int64_t kNothingCached = -1;
inline constexpr int64_t kKvEventsMax = 1 << 24;

// Where the KV of preempted requests goes, as snapshots under numbers. Called on the driving thread
// without a lock of the engine; must not call into it.
struct SpillStore {
  std::function<bool(uint64_t id, const void* from, int64_t bytes)> write;  // appends
  std::function<bool(uint64_t id, void* into, int64_t offset, int64_t bytes)> read;
  std::function<void(uint64_t id)> discard;  // once for each id, also after a write that failed
};

struct EngineOptions {
  int threads = 0;                 // 0 = affinity ∩ cgroup quota
  std::vector<uint64_t> affinity;  // CPU bit mask; empty = inherit
  int priority = 0;                // nice value of the library's threads, 0..19
  Drive drive = Drive::library;
  HostAllocator allocator;
  int64_t memory_limit_bytes = 0;  // 0 = none
  // KV that sessions hold and that is kept for later. 0 = half of the memory that is free when the
  // engine is made; with a memory limit that limit alone.
  int64_t kv_budget_bytes = 0;
  // Of it, KV that no session holds. 0 = a quarter of the budget, at most 512 MiB; kNothingCached.
  int64_t kv_cached_bytes = 0;
  // Most requests that wait to begin; beyond, a new one is refused (Code::busy). 0 = no limit.
  int64_t queue_max = 0;
  int64_t kv_events = 0;  // most of them that wait for take_kv_events(); 0 = none are recorded
  SpillStore spill;       // all three functions, or none: what is preempted is computed again
  LogSink log;            // empty = silent
};

enum class LoadContent : int32_t {
  full = 0,
  vocabulary = 1,  // metadata and tokenizer only, of any architecture; no session can be created
};

// What becomes of weights of 16 and 32 bits.
enum class LoadWeights : int32_t { as_is = 0, q8_0 = 1, q4_0 = 2 };

using backend::Repack;

struct LoadOptions {
  LoadContent content = LoadContent::full;
  LoadWeights weights = LoadWeights::as_is;
  Repack repack = Repack::when_free;
  model::Progress progress;
};

// deterministic: fast, but a token's logits are the same bits whatever is computed beside it, in
// whatever chunks, and wherever its KV came from.
enum class ComputePath : int32_t { fast = 0, reference = 1, deterministic = 2 };

// What the requests of a session are for.
enum class SessionOutput : int32_t { tokens = 0, embedding = 1 };

class Model;

struct SessionOptions {
  int64_t context_tokens = 0;  // 0 = the model's own context length
  ComputePath path = ComputePath::fast;
  int64_t prefill_chunk_tokens = 0;  // 0 = the engine's choice (512)
  SessionOutput output = SessionOutput::tokens;
  // How keys and values are kept. The reference path keeps f32, and takes f16 for it.
  kernels::KvType kv_type = kernels::KvType::f16;
  // Makes the guesses of requests with drafts (engine/draft_model.h); kept alive by the session.
  // Null = they are looked up in the session's own tokens.
  std::shared_ptr<Model> draft_model;
};

struct MemoryUse {
  int64_t limit_bytes = 0;  // 0 = none
  int64_t used_bytes = 0, peak_bytes = 0;
  int64_t weights_mapped_bytes = 0;
  int64_t kv_bytes = 0;         // that sessions hold
  int64_t kv_cached_bytes = 0;  // that none holds
  int64_t kv_budget_bytes = 0;  // for both; 0 = none but the limit
  int64_t activation_bytes = 0;
  int64_t weights_packed_bytes = 0;
};

// What one session holds of KV.
struct SessionKv {
  int64_t tokens = 0;  // whose KV is there
  kv::TableUse use;
  kv::BlockHash root = 0;  // the parent of its first block in KV events
};

class Engine;

class Model {
 public:
  virtual ~Model() = default;
  virtual const std::shared_ptr<Engine>& engine() const = 0;
  virtual const model::ModelFile& file() const = 0;
  virtual const model::ModelConfig* config() const = 0;  // null for LoadContent::vocabulary
  // Fails with the reason when the file's tokenizer is not supported (vocabulary loads only).
  virtual Result<const tokenizer::Tokenizer*> tokenizer() const = 0;
  // The file's own chat template; empty when it has none.
  virtual std::string_view chat_template() const = 0;
  // Renders `source`, or the file's template when it is empty.
  virtual Result<std::string> render(std::string_view source,
                                     tokenizer::ChatTemplateInput input) const = 0;
  virtual int64_t load_ns() const = 0;
  // The host lets go: running requests of all its sessions are cancelled, new ones refused.
  virtual void close() = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual const std::shared_ptr<Model>& model() const = 0;
  virtual int64_t context_tokens() const = 0;
  virtual SessionOutput output() const = 0;
  virtual std::vector<int32_t> tokens() const = 0;  // busy sessions: as of the last finished step
  // Keeps the first `tokens` tokens (of at most that many) and gives the others' pages back. Busy
  // with a request: Code::busy.
  virtual Status truncate(int64_t tokens) = 0;
  // A session of the same model and options that holds the same tokens. Their KV is shared until
  // one of the two writes to a page. Busy with a request: Code::busy.
  virtual Result<std::shared_ptr<Session>> fork() const = 0;
  // Writes tokens and KV for Engine::restore(), here or elsewhere. Busy with a request: Code::busy;
  // `io` when the writer fails.
  virtual Status save(const kv::SnapshotWrite& write) const = 0;
  virtual int64_t save_bytes() const = 0;  // that save() would write now
  virtual SessionKv kv() const = 0;        // busy sessions: with the pages of the step that runs
  // The host lets go: a running request is cancelled, new ones are refused.
  virtual void close() = 0;
};

// What the callback of generate() wants next.
enum class Verdict : int32_t {
  go_on = 0,
  stop = 1,    // keep output and KV up to and including this event
  cancel = 2,  // roll the session back to before the request
};

class Engine {
 public:
  static Result<std::shared_ptr<Engine>> create(const EngineOptions& options);
  virtual ~Engine() = default;

  virtual Result<std::shared_ptr<Model>> load(const model::Source& source,
                                              const LoadOptions& options) = 0;
  virtual Result<std::shared_ptr<Session>> create_session(const std::shared_ptr<Model>& model,
                                                          const SessionOptions& options) = 0;

  // A session that goes on where save() was called, with the same model, path and output. Errors:
  // those of kv::read_snapshot().
  virtual Result<std::shared_ptr<Session>> restore(const std::shared_ptr<Model>& model,
                                                   const SessionOptions& options,
                                                   const kv::SnapshotRead& read) = 0;

  // Queues a request; its events come through poll(). A session runs one request at a time:
  // Code::busy otherwise, and when queue_max requests wait already.
  virtual Result<std::shared_ptr<Request>> submit(const std::shared_ptr<Session>& session,
                                                  RequestSpec spec) = 0;
  // Blocks until the request is done, calling on_event on this thread. With Drive::host this call
  // runs step() itself. From inside an on_event of the same engine: Code::busy.
  virtual Result<std::shared_ptr<Request>> generate(
      const std::shared_ptr<Session>& session, RequestSpec spec,
      const std::function<Verdict(const Event&)>& on_event) = 0;

  // Runs each request in a session of its own that is like `session`, as many in a pass as fit.
  // Blocks until all are done; when one cannot be begun, none is. With Drive::host as generate().
  virtual Result<std::vector<std::shared_ptr<Request>>> run_all(
      const std::shared_ptr<Session>& session, std::vector<RequestSpec> specs) = 0;

  // Up to `events_max` events of submitted requests. Waits up to timeout_ms (0 = not at all,
  // negative = forever) when there are none and requests are running; with nothing running it
  // returns at once.
  virtual std::vector<Event> poll(size_t events_max, int64_t timeout_ms) = 0;
  // A descriptor of the caller's own that is readable while poll() has events, and for good once
  // the engine is closed. To be waited for and closed, not read or written. `unsupported` where the
  // system has none.
  virtual Result<int> wakeup_fd() = 0;

  // One turn: schedule, pack, forward, sample, commit, publish. False = nothing to do. Only with
  // Drive::host (invalid_state otherwise); busy when another thread is inside.
  virtual Result<bool> step() = 0;

  // The host lets go: cancels everything and waits until the library's threads have stopped. From
  // inside an on_event of this engine it only cancels; the outermost generate() then waits.
  virtual void close() = 0;

  virtual MemoryUse memory() const = 0;
  virtual Metrics metrics() const = 0;
  // Of all KV pages, as of now; nothing else runs in the engine meanwhile but a batch. What is
  // found is logged and counted in the metrics.
  virtual kv::AuditReport audit_kv() = 0;
  // What of KV has become known by its tokens, or unknown, since the last call (kv/event_log.h).
  // invalid_state without kv_events.
  virtual Result<kv::KvEventsTaken> take_kv_events(std::span<kv::KvEvent> out) = 0;
  virtual int threads() const = 0;
};

}  // namespace optima::engine
