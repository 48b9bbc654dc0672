// The host's side of the engine: creating, submitting, waiting, closing. The turn itself is in
// engine.cc.
#include <algorithm>

#include "base/free_memory.h"
#include "base/text.h"
#include "engine/engine_impl.h"

namespace optima::engine {
namespace {

kv::PoolLimits kv_limits(const EngineOptions& options) {
  constexpr int64_t kCachedMax = int64_t{512} << 20;
  kv::PoolLimits limits{options.kv_budget_bytes, options.kv_cached_bytes, options.kv_events};
  if (limits.budget_bytes == 0 && options.memory_limit_bytes == 0)
    limits.budget_bytes = free_memory_bytes() / 2;
  if (limits.cached_bytes == 0) {
    const int64_t whole =
        limits.budget_bytes > 0 ? limits.budget_bytes : options.memory_limit_bytes;
    limits.cached_bytes = whole > 0 ? std::min(whole / 4, kCachedMax) : kCachedMax;
  }
  limits.cached_bytes = std::max<int64_t>(0, limits.cached_bytes);
  return limits;
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::create(const EngineOptions& options) {
  if (options.threads < 0 || options.threads > 4096)
    return Status(Code::invalid_argument,
                  text("threads is ", options.threads, ", allowed are 0 to 4096"));
  if (options.priority < 0 || options.priority > 19)
    return Status(Code::invalid_argument,
                  text("priority is ", options.priority, ", allowed are 0 to 19"));
  if (options.memory_limit_bytes < 0)
    return Status(Code::invalid_argument,
                  text("memory limit is ", options.memory_limit_bytes, " bytes, wanted >= 0"));
  if (options.kv_budget_bytes < 0 || options.kv_cached_bytes < kNothingCached)
    return Status(Code::invalid_argument,
                  text("a KV budget of ", options.kv_budget_bytes, " bytes, of which ",
                       options.kv_cached_bytes, " may be cached; wanted >= 0 and >= -1"));
  if (options.queue_max < 0)
    return Status(Code::invalid_argument, text("queue_max is ", options.queue_max, ", wanted >= 0"),
                  {options.queue_max, -1, -1});
  if (options.kv_events < 0 || options.kv_events > kKvEventsMax)
    return Status(Code::invalid_argument,
                  text("kv_events is ", options.kv_events, ", allowed are 0 to ", kKvEventsMax),
                  {options.kv_events, -1, kKvEventsMax});
  const SpillStore& spill = options.spill;
  if (bool(spill.write) != bool(spill.read) || bool(spill.write) != bool(spill.discard))
    return Status(Code::invalid_argument, "spilling needs all of its three functions or none");
  if ((options.allocator.allocate == nullptr) != (options.allocator.release == nullptr))
    return Status(Code::invalid_argument, "the host allocator needs both functions or none");
  OPTIMA_ASSIGN(auto pool,
                ThreadPool::create({options.threads, options.affinity, options.priority}));
  return std::shared_ptr<Engine>(
      std::make_shared<EngineImpl>(options, kv_limits(options), std::move(pool)));
}

EngineImpl::EngineImpl(const EngineOptions& options, const kv::PoolLimits& kv,
                       std::unique_ptr<ThreadPool> pool)
    : hub_(std::make_shared<Hub>()),
      options_(options),
      allocator_(options.allocator, options.memory_limit_bytes),
      pool_(std::move(pool)),
      pages_(std::make_shared<kv::PagePool>(allocator_, kv)) {}

// By now no request is active: an active one holds its session, and that the engine. This may be
// the driving thread itself, letting go of the last session.
EngineImpl::~EngineImpl() {
  token_->stop.store(true);
  {
    const std::lock_guard lock(hub_->mutex);
    closed_ = true;
  }
  hub_->work.notify_all();
  if (!driver_.joinable()) return;
  if (driver_.get_id() == std::this_thread::get_id()) {
    driver_.detach();
  } else {
    driver_.join();
  }
}

Result<std::shared_ptr<Model>> EngineImpl::load(const model::Source& source,
                                                const LoadOptions& options) {
  {
    const std::lock_guard lock(hub_->mutex);
    if (closed_) return Status(Code::invalid_state, "the engine was destroyed");
  }
  Result<std::shared_ptr<ModelImpl>> loaded =
      ModelImpl::load(shared_from_this(), source, options, allocator_,
                      {options_.threads, options_.affinity, options_.priority});
  if (!loaded.ok()) {
    log(LogLevel::error, text("load: ", loaded.status().message()));
    return loaded.take_status();
  }
  const std::shared_ptr<ModelImpl> model = loaded.take();
  log(LogLevel::info,
      text(model->file().name(), ": ", model->file().tensors().size(), " tensors, ",
           model->file().file_bytes(), " bytes, loaded in ", model->load_ns() / 1000000, " ms"));
  const std::lock_guard lock(hub_->mutex);
  std::erase_if(models_, [](const auto& entry) { return entry.expired(); });
  models_.push_back(model);
  return std::shared_ptr<Model>(model);
}

Result<std::shared_ptr<Session>> EngineImpl::create_session(const std::shared_ptr<Model>& model,
                                                            const SessionOptions& options) {
  OPTIMA_ASSIGN(auto session, make_session(model, options));
  const std::lock_guard lock(hub_->mutex);
  session->enlist();
  return std::shared_ptr<Session>(std::move(session));
}

Result<std::shared_ptr<SessionImpl>> EngineImpl::make_session(const std::shared_ptr<Model>& model,
                                                              const SessionOptions& options) {
  const auto impl = std::static_pointer_cast<ModelImpl>(model);
  if (impl->engine().get() != this)
    return Status(Code::invalid_argument, "the model belongs to another engine");
  if (impl->closed()) return Status(Code::invalid_state, "the model was destroyed");
  if (options.context_tokens < 0 || options.prefill_chunk_tokens < 0)
    return Status(Code::invalid_argument,
                  text("context_tokens ", options.context_tokens, ", prefill_chunk_tokens ",
                       options.prefill_chunk_tokens, ", wanted >= 0"));
  const model::ModelConfig* config = impl->config();
  if (config != nullptr && config->mask == kernels::AttentionMask::all &&
      options.output == SessionOutput::tokens)
    return Status(Code::unsupported, text(config->architecture,
                                          " is an encoder: it makes embeddings and generates no "
                                          "tokens, the session's output must be embeddings"));
  if (options.path == ComputePath::reference && options.kv_type != kernels::KvType::f16)
    return Status(Code::unsupported, text("KV of ", kernels::kv_type_name(options.kv_type),
                                          " on the reference path, which computes with ",
                                          kernels::kv_type_name(kernels::KvType::f32), " alone"));
  const RunnerResult result =
      options.output == SessionOutput::tokens ? RunnerResult::logits : RunnerResult::hidden;
  OPTIMA_ASSIGN(ModelRunner * runner, impl->runner({options.path, result, options.kv_type},
                                                   {*pool_, allocator_, pages_}));
  if (options.context_tokens > impl->config()->context_length)
    return Status(Code::invalid_argument,
                  text("context of ", options.context_tokens, " tokens, the model was trained for ",
                       impl->config()->context_length),
                  {options.context_tokens, -1, impl->config()->context_length});
  std::shared_ptr<SessionImpl> draft;
  if (options.draft_model != nullptr) {
    OPTIMA_ASSIGN(draft, create_draft_session(*impl, options));
  }
  return std::make_shared<SessionImpl>(hub_, impl, runner, options, std::move(draft));
}

// The hidden session of a session with a draft model: as long as the draft model allows.
Result<std::shared_ptr<SessionImpl>> EngineImpl::create_draft_session(
    const ModelImpl& model, const SessionOptions& options) {
  if (options.output != SessionOutput::tokens)
    return Status(Code::invalid_argument, "an embedding has no use for a draft model");
  SessionOptions own;
  own.path = options.path;
  own.kv_type = options.kv_type;
  const int64_t context =
      options.context_tokens > 0 ? options.context_tokens : model.config()->context_length;
  if (const model::ModelConfig* config = options.draft_model->config(); config != nullptr)
    own.context_tokens = std::min<int64_t>(context, config->context_length);
  Result<std::shared_ptr<SessionImpl>> session = make_session(options.draft_model, own);
  if (!session.ok()) return session.take_status().in("draft model");
  OPTIMA_ASSIGN(const tokenizer::Tokenizer* wanted, model.tokenizer());
  OPTIMA_ASSIGN(const tokenizer::Tokenizer* has, options.draft_model->tokenizer());
  OPTIMA_TRY(check_same_vocabulary(*wanted, *has));
  return session;
}

Result<std::shared_ptr<Session>> EngineImpl::restore(const std::shared_ptr<Model>& model,
                                                     const SessionOptions& options,
                                                     const kv::SnapshotRead& read) {
  OPTIMA_ASSIGN(const std::shared_ptr<Session> session, create_session(model, options));
  OPTIMA_TRY(std::static_pointer_cast<SessionImpl>(session)->restore(read));
  return session;
}

Result<std::shared_ptr<RequestImpl>> EngineImpl::make_request(
    const std::shared_ptr<Session>& session, RequestSpec spec, Delivery delivery) {
  auto impl = std::static_pointer_cast<SessionImpl>(session);
  if (impl->model()->engine().get() != this)
    return Status(Code::invalid_argument, "the session belongs to another engine");
  auto request = std::make_shared<RequestImpl>(hub_, std::move(impl), std::move(spec), delivery);
  OPTIMA_TRY(request->prepare());
  return request;
}

Status EngineImpl::enqueue(std::span<const std::shared_ptr<RequestImpl>> requests) {
  const std::lock_guard lock(hub_->mutex);
  if (closed_) return Status(Code::invalid_state, "the engine was destroyed");
  const auto count = static_cast<int64_t>(requests.size());
  OPTIMA_TRY(scheduler::check_queue({waiting(), options_.queue_max}, count));
  for (size_t i = 0; i < requests.size(); ++i) {
    Status status = requests[i]->check_claim();
    if (status.ok()) continue;
    if (count == 1) return status;
    return std::move(status).in(text("request ", i, " of ", count));
  }
  if (options_.drive == Drive::library) OPTIMA_TRY(start_driver());
  active_.reserve(active_.size() + requests.size());
  const TimePoint time = now();
  for (const auto& request : requests) {
    request->claim(time);
    request->set_sink(&queue_);
    active_.push_back(request);
  }
  stalled_ = false;
  hub_->work.notify_all();
  return {};
}

Result<std::shared_ptr<Request>> EngineImpl::submit(const std::shared_ptr<Session>& session,
                                                    RequestSpec spec) {
  OPTIMA_ASSIGN(std::shared_ptr<RequestImpl> request,
                make_request(session, std::move(spec), Delivery::queue));
  OPTIMA_TRY(enqueue({&request, 1}));
  return std::shared_ptr<Request>(std::move(request));
}

Result<std::shared_ptr<Request>> EngineImpl::generate(
    const std::shared_ptr<Session>& session, RequestSpec spec,
    const std::function<Verdict(const Event&)>& on_event) {
  if (called_back_on_this_thread())
    return Status(Code::busy, "generate() from inside a callback of the same engine");
  OPTIMA_ASSIGN(
      const std::shared_ptr<RequestImpl> request,
      make_request(session, std::move(spec), on_event ? Delivery::callback : Delivery::none));
  OPTIMA_TRY(enqueue({&request, 1}));
  return run_blocking(request, on_event);
}

bool EngineImpl::called_back_on_this_thread() const {
  const std::lock_guard lock(hub_->mutex);
  return std::find(in_callback_.begin(), in_callback_.end(), std::this_thread::get_id()) !=
         in_callback_.end();
}

// Events in order, each answered before the next token is computed; the turns are taken by the
// driving thread, or here.
Result<std::shared_ptr<Request>> EngineImpl::run_blocking(
    const std::shared_ptr<RequestImpl>& request,
    const std::function<Verdict(const Event&)>& on_event) {
  const std::shared_ptr<EngineImpl> self = shared_from_this();  // outlives its own callback
  const bool host_drives = options_.drive == Drive::host;
  for (;;) {
    std::unique_lock lock(hub_->mutex);
    if (request->own_events().empty()) {
      const bool done = request->finished();
      if (done && closed_) {
        lock.unlock();
        close();  // Asked for inside a callback of ours: finished now.
        break;
      }
      if (done) break;
      if (!host_drives) {
        hub_->events.wait(lock,
                          [&] { return request->finished() || !request->own_events().empty(); });
        continue;
      }
      lock.unlock();
      bool ran = false;
      if (turn_mutex_.try_lock()) {
        ran = turn_for_host();
        turn_mutex_.unlock();
      }
      if (!ran) {
        lock.lock();
        if (request->finished() || !request->own_events().empty()) continue;
        hub_->events.wait_for(lock, std::chrono::milliseconds(1));
      }
      continue;
    }
    const Event event = std::move(request->own_events().front());
    request->own_events().pop_front();
    in_callback_.push_back(std::this_thread::get_id());
    lock.unlock();
    const Verdict verdict = on_event(event);
    lock.lock();
    std::erase(in_callback_, std::this_thread::get_id());
    request->answer(verdict);
    stalled_ = false;
    hub_->work.notify_all();
  }
  return std::shared_ptr<Request>(request);
}

Result<std::vector<std::shared_ptr<Request>>> EngineImpl::run_all(
    const std::shared_ptr<Session>& session, std::vector<RequestSpec> specs) {
  if (called_back_on_this_thread())
    return Status(Code::busy, "run_all() from inside a callback of the same engine");
  const auto like = std::static_pointer_cast<SessionImpl>(session);
  std::vector<std::shared_ptr<RequestImpl>> requests;
  for (size_t i = 0; i < specs.size(); ++i) {
    OPTIMA_ASSIGN(const std::shared_ptr<Session> own,
                  create_session(like->model(), like->options()));
    Result<std::shared_ptr<RequestImpl>> request =
        make_request(own, std::move(specs[i]), Delivery::none);
    if (!request.ok()) return request.take_status().in(text("request ", i, " of ", specs.size()));
    requests.push_back(request.take());
  }
  OPTIMA_TRY(enqueue(requests));
  std::vector<std::shared_ptr<Request>> out;
  for (const auto& request : requests) {
    OPTIMA_ASSIGN(auto done, run_blocking(request, nullptr));
    out.push_back(std::move(done));
  }
  return out;
}

std::vector<Event> EngineImpl::poll(size_t events_max, int64_t timeout_ms) {
  std::unique_lock lock(hub_->mutex);
  const auto ready = [this] {
    return !queue_.empty() || closed_ ||
           std::none_of(active_.begin(), active_.end(),
                        [](const auto& request) { return request->delivery() == Delivery::queue; });
  };
  if (timeout_ms < 0) {
    hub_->events.wait(lock, ready);
  } else if (timeout_ms > 0) {
    hub_->events.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
  }
  return queue_.take(events_max);
}

Result<int> EngineImpl::wakeup_fd() {
  const std::lock_guard lock(hub_->mutex);
  return queue_.wakeup_fd();
}

Result<bool> EngineImpl::step() {
  if (options_.drive != Drive::host)
    return Status(Code::invalid_state, "this engine drives itself; step() is for Drive::host");
  if (called_back_on_this_thread())
    return Status(Code::busy, "step() from inside a callback of the same engine");
  const std::unique_lock turn_lock(turn_mutex_, std::try_to_lock);
  if (!turn_lock.owns_lock()) return Status(Code::busy, "another thread is inside step()");
  return turn_for_host();
}

bool EngineImpl::turn_for_host() {
  Sessions released;  // Freed after the turn, outside the hub's lock.
  return turn(released);
}

// ---- the driving thread ----

Status EngineImpl::start_driver() {
  if (driver_.joinable()) return {};
  try {
    driver_ = std::thread(&EngineImpl::drive, this, token_);
  } catch (const std::system_error& error) {
    return Status(Code::oom_host, text("the driving thread cannot be started: ", error.what()));
  }
  return {};
}

void EngineImpl::drive(EngineImpl* engine, std::shared_ptr<DriverToken> token) {
  while (!token->stop.load()) {
    Sessions released;
    bool ran = false;
    {
      const std::lock_guard turn_lock(engine->turn_mutex_);
      ran = engine->turn(released);
    }
    released.clear();  // May end the engine, if it held the last session.
    if (token->stop.load()) return;
    if (!ran) engine->wait_for_work();
  }
}

bool EngineImpl::has_work() const {
  return closed_ || std::any_of(active_.begin(), active_.end(),
                                [](const auto& request) { return !request->waits_for_host(); });
}

// Sleeps until there is something to compute, at most until the next deadline.
void EngineImpl::wait_for_work() {
  std::unique_lock lock(hub_->mutex);
  // What is held by nobody in here (a session that is being saved) comes back without a word.
  constexpr auto kMemoryPoll = std::chrono::milliseconds(10);
  if (stalled_) {
    hub_->work.wait_for(lock, kMemoryPoll, [this] { return token_->stop.load() || !stalled_; });
    return;
  }
  std::optional<TimePoint> wake;
  for (const auto& request : active_)
    if (const auto deadline = request->deadline(); deadline && (!wake || *deadline < *wake))
      wake = deadline;
  const auto ready = [this] { return token_->stop.load() || has_work(); };
  if (wake) {
    hub_->work.wait_until(lock, *wake, ready);
  } else {
    hub_->work.wait(lock, ready);
  }
}

// ---- the end ----

void EngineImpl::close() {
  {
    std::unique_lock lock(hub_->mutex);
    closed_ = true;
    for (const auto& request : active_) request->cancel();
    hub_->work.notify_all();
    hub_->events.notify_all();
  }
  if (called_back_on_this_thread()) return;
  if (options_.drive == Drive::host) {
    const std::lock_guard turn_lock(turn_mutex_);
    turn_for_host();
  }
  std::unique_lock lock(hub_->mutex);
  hub_->events.wait(lock, [this] { return active_.empty(); });
  queue_.close();
  token_->stop.store(true);
  hub_->work.notify_all();
  std::thread driver = std::move(driver_);
  lock.unlock();
  if (!driver.joinable()) return;
  if (driver.get_id() == std::this_thread::get_id()) {
    driver.detach();
  } else {
    driver.join();
  }
}

int64_t EngineImpl::waiting() const {
  return std::count_if(active_.begin(), active_.end(),
                       [](const auto& request) { return !request->running(); });
}

Metrics EngineImpl::metrics() const {
  const kv::PoolCounts kv = pages_->counts();
  const std::lock_guard lock(hub_->mutex);
  Metrics out = hub_->metrics;
  out.kv_bytes_budget = kv.bytes_budget;
  out.kv_bytes_held = kv.bytes_held;
  out.kv_bytes_cached = kv.bytes_cached;
  out.kv_pages_held = kv.pages_held;
  out.kv_pages_sealed = kv.pages_sealed;
  out.kv_pages_cached = kv.pages_cached;
  out.requests_waiting = waiting();
  out.requests_running = static_cast<int64_t>(active_.size()) - out.requests_waiting;
  return out;
}

MemoryUse EngineImpl::memory() const {
  MemoryUse use;
  use.limit_bytes = allocator_.limit_bytes();
  use.used_bytes = allocator_.bytes_used();
  use.peak_bytes = allocator_.bytes_peak();
  const kv::PoolCounts kv = pages_->counts();
  use.kv_bytes = kv.bytes_held;
  use.kv_cached_bytes = kv.bytes_cached;
  use.kv_budget_bytes = kv.bytes_budget;
  const std::lock_guard lock(hub_->mutex);
  for (const auto& entry : models_)
    if (const auto model = entry.lock()) model->add_memory(use);
  return use;
}

}  // namespace optima::engine
