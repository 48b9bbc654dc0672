// Engine, and how the events of its requests find them: whoever waits for an event polls for all.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "optima/cpp/event.hpp"

namespace optima {
inline namespace OPTIMA_CPP_MODE {

using Memory = optima_memory;
using Metrics = optima_metrics;
using ProbeReport = optima_probe_report;

namespace detail {

// An event of optima_poll, released with it.
class PolledEvent {
 public:
  explicit PolledEvent(const optima_event& event) : event_(event) {}
  PolledEvent(PolledEvent&& other) noexcept : event_(std::exchange(other.event_, {})) {}
  PolledEvent& operator=(PolledEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~PolledEvent() { api().event_release(&event_); }
  const optima_event& get() const { return event_; }

 private:
  optima_event event_;
};

// The events of one request that were polled and not taken.
struct Inbox {
  std::deque<PolledEvent> events;
  bool done = false;  // its last event was put in, or will never come
};

// The engine's handle, which lives as long as the last object of it, and its requests' inboxes.
class Hub {
 public:
  Hub(optima_engine* engine, Drive drive) : drive_(drive), engine_(engine) {}
  optima_engine* engine() const { return engine_.get(); }

  // call() submits and returns a request, or NULL. No event is sorted before its inbox is there.
  template <typename Call>
  std::shared_ptr<Inbox> open(Call call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const optima_request* request = call();
    if (request == nullptr) return nullptr;
    auto inbox = std::make_shared<Inbox>();
    inboxes_.emplace(api().request_id(request), inbox);
    return inbox;
  }

  // Events that still come for the request are dropped; those that are there already, at once.
  void close(std::uint64_t id) noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    inboxes_.erase(id);
    for (std::size_t count = 1; count != 0 && !polling_;) {
      optima_event events[kEvents];
      if (poll(events, &count, 0, nullptr) != OPTIMA_OK) break;
      for (std::size_t i = 0; i < count; ++i) sort(PolledEvent(events[i]));
      sorted_.notify_all();
    }
  }

  // Takes what has happened, for all requests. The number of events.
  Outcome<std::size_t> pump(std::int32_t timeout_ms) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (polling_) return std::size_t{0};
    return turn(lock, timeout_ms);
  }

  // The next event of the inbox; none at its end, or when it did not come in time (negative =
  // wait).
  Outcome<std::optional<PolledEvent>> next(Inbox& inbox, const optima_request* request,
                                           std::int64_t timeout_ms) {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (!inbox.events.empty()) {
        std::optional<PolledEvent> event(std::move(inbox.events.front()));
        inbox.events.pop_front();
        return event;
      }
      const std::int64_t left = timeout_ms < 0 ? -1 : time_left(begin, timeout_ms);
      if (inbox.done) return std::optional<PolledEvent>();
      if (polling_) {
        if (left == 0) return std::optional<PolledEvent>();
        wait(lock, left);
        continue;
      }
      const bool ended =
          api().request_done(request) != 0;  // then its events are there to be polled
#ifdef OPTIMA_NO_EXCEPTIONS
      const Expected<std::size_t> took = turn(lock, left);
      if (!took) return took.error();
      const std::size_t events = *took;
#else
      const std::size_t events = turn(lock, left);
#endif
      if (events == 0 && ended) inbox.done = true;  // somebody else has polled it
      if (events == 0 && left == 0) return std::optional<PolledEvent>();
    }
  }

 private:
  static constexpr std::size_t kEvents = 8;  // of one poll

  static std::int64_t time_left(std::chrono::steady_clock::time_point begin,
                                std::int64_t timeout_ms) {
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    return passed.count() >= timeout_ms ? 0 : timeout_ms - passed.count();
  }

  void wait(std::unique_lock<std::mutex>& lock, std::int64_t left_ms) {
    if (left_ms < 0) {
      sorted_.wait(lock);
    } else {
      sorted_.wait_for(lock, std::chrono::milliseconds(left_ms));
    }
  }

  // One poll by this thread alone, without the lock meanwhile.
  Outcome<std::size_t> turn(std::unique_lock<std::mutex>& lock, std::int64_t timeout_ms) {
    optima_event events[kEvents];
    std::size_t count = 0;
    optima_error* error = nullptr;
    polling_ = true;
    lock.unlock();
    const optima_status status = drive_ == Drive::host ? step(events, &count, &error)
                                                       : poll(events, &count, timeout_ms, &error);
    lock.lock();
    polling_ = false;
    for (std::size_t i = 0; i < count; ++i) sort(PolledEvent(events[i]));
    sorted_.notify_all();
    if (status != OPTIMA_OK) return fail<std::size_t>(take(status, error));
    return count;
  }

  optima_status poll(optima_event* events, std::size_t* count, std::int64_t timeout_ms,
                     optima_error** error) {
    const auto bounded = static_cast<std::int32_t>(timeout_ms > INT32_MAX ? INT32_MAX : timeout_ms);
    for (std::size_t i = 0; i < kEvents; ++i) events[i] = sized<optima_event>();
    return api().poll(engine(), events, kEvents, sizeof *events, bounded, count, error);
  }

  // Where the host drives: the turns that make an event are taken here.
  optima_status step(optima_event* events, std::size_t* count, optima_error** error) {
    optima_status status = poll(events, count, 0, error);
    if (status != OPTIMA_OK || *count != 0) return status;
    status = api().step(engine(), nullptr, nullptr);
    // BUSY: another thread is inside and makes events too.
    if (status != OPTIMA_OK && status != OPTIMA_E_BUSY) return status;
    return poll(events, count, status == OPTIMA_E_BUSY ? 1 : 0, error);
  }

  void sort(PolledEvent event) {
    const auto found = inboxes_.find(event.get().request_id);
    if (found == inboxes_.end()) return;
    const std::shared_ptr<Inbox> inbox = found->second;
    if (event.get().type == OPTIMA_EVENT_DONE) {
      inbox->done = true;
      inboxes_.erase(found);
    }
    inbox->events.push_back(std::move(event));
  }

  const Drive drive_;
  Owned<optima_engine> engine_;
  std::mutex mutex_;
  std::condition_variable sorted_;
  bool polling_ = false;
  std::unordered_map<std::uint64_t, std::shared_ptr<Inbox>> inboxes_;
};

inline void log(void* user, optima_log_level level, const char* message,
                std::size_t bytes) noexcept {
  Carried dropped;
  dropped.run<int>(0, [&] {
    (*static_cast<LogFunction*>(user))(static_cast<LogLevel>(level), {message, bytes});
    return 0;
  });
}

inline void release_log(void* user) noexcept {
  delete static_cast<LogFunction*>(user);
}

}  // namespace detail

/// Owns threads and memory, loads models, runs requests. Its models, sessions and requests keep it:
/// it ends with the last of them. All members may be called from any thread.
class Engine {
 public:
  static Outcome<Engine> create(const EngineOptions& options = {}) {
    return detail::after<Engine>(detail::use_library, [&] {
      optima_engine_options plain = detail::to_c(options);
      if (options.log) {
        plain.log = &detail::log;
        plain.log_user = new LogFunction(options.log);
        plain.log_release = &detail::release_log;
      }
      optima_engine* handle = nullptr;
      return detail::invoke<Engine>(
          [&](optima_error** error) { return detail::api().engine_create(&plain, &handle, error); },
          [&] { return Engine(std::make_shared<detail::Hub>(handle, options.drive)); });
    });
  }

  /// Threads that compute.
  std::int32_t threads() const { return detail::api().engine_threads(get()); }

  /// Memory of the engine, as of now.
  Outcome<Memory> memory() const {
    return detail::query<Memory>([&](Memory* out, optima_error** error) {
      return detail::api().mem_query(get(), out, error);
    });
  }

  /// What the engine does and has done, as of now.
  Outcome<Metrics> metrics() const {
    auto out = detail::sized<Metrics>();
    return detail::invoke_newer<Metrics>(
        &optima_api_v1::metrics_query, "optima_metrics_query",
        [&](auto call, optima_error** error) { return call(get(), &out, error); },
        [&] { return out; });
  }

  /// The same with histograms as Prometheus text; every line has the label `engine`.
  Outcome<std::string> metrics_text(std::string_view label,
                                    MetricNames names = MetricNames::native) const {
    optima_buffer* buffer = nullptr;
    return detail::invoke_newer<std::string>(
        &optima_api_v1::metrics_render, "optima_metrics_render",
        [&](auto call, optima_error** error) {
          return call(get(), static_cast<optima_metric_names>(names), label.data(), label.size(),
                      &buffer, error);
        },
        [&] { return detail::text_of(detail::Owned<optima_buffer>(buffer).get()); });
  }

  /// One turn of an engine with Drive::host; false when there was nothing to do.
  Outcome<bool> step() {
    std::int32_t worked = 0;
    return detail::invoke<bool>(
        [&](optima_error** error) { return detail::api().step(get(), &worked, error); },
        [&] { return worked != 0; });
  }

  /// Takes what has happened to submitted requests, for Request::try_next. Waits up to timeout_ms
  /// (0 = not at all, negative = forever) while there is nothing and requests are running. The
  /// number of events; 0 at once while another thread waits for one.
  Outcome<std::size_t> poll(std::int32_t timeout_ms = 0) { return hub_->pump(timeout_ms); }

  /// For event loops: a descriptor of the caller's own that is readable while poll() has events.
  Outcome<std::int32_t> wakeup_fd() {
    std::int32_t fd = -1;
    return detail::invoke_newer<std::int32_t>(
        &optima_api_v1::engine_wakeup_fd, "optima_engine_wakeup_fd",
        [&](auto call, optima_error** error) { return call(get(), &fd, error); },
        [&] { return fd; });
  }

  optima_engine* get() const noexcept { return hub_->engine(); }
  const std::shared_ptr<detail::Hub>& hub() const noexcept { return hub_; }

 private:
  explicit Engine(std::shared_ptr<detail::Hub> hub) : hub_(std::move(hub)) {}
  std::shared_ptr<detail::Hub> hub_;
};

/// What the machine has, and what it measures when the flags ask.
inline Outcome<ProbeReport> probe(const ProbeOptions& options = {}) {
  return detail::after<ProbeReport>(detail::use_library, [&] {
    const optima_probe_options plain = detail::to_c(options);
    return detail::query<ProbeReport>([&](ProbeReport* out, optima_error** error) {
      return detail::api().probe(&plain, out, error);
    });
  });
}

}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
