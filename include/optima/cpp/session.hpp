// Session, and what its requests become: Result for who waits, Request for who does not.
#pragma once

#include <iterator>

#include "optima/cpp/model.hpp"

namespace optima {
inline namespace OPTIMA_CPP_MODE {

using Counters = optima_counters;
using SessionKv = optima_session_kv;

namespace detail {

// What a request's callbacks and buffers need until C lets go of it.
struct Pending : Callbacks {
  std::shared_ptr<Pending> self;  // held by C
  std::vector<float> logits;

  static void release(void* user) noexcept {
    const auto last = std::move(static_cast<Pending*>(static_cast<Callbacks*>(user))->self);
  }
};

// Room for the logits that the request asks for.
inline void make_room(optima_request_desc& desc, std::vector<float>& logits,
                      std::int64_t vocabulary) {
  logits.resize(desc.logits_position_count * static_cast<std::size_t>(vocabulary));
  if (logits.empty()) return;
  desc.logits_out = logits.data();
  desc.logits_capacity = logits.size();
}

}  // namespace detail

/// What a finished request produced. Immutable; its views live as long as it.
class Result {
 public:
  Result(optima_result* handle, std::vector<float> logits, std::int64_t deadline_ms)
      : handle_(handle), logits_(std::move(logits)), deadline_ms_(deadline_ms) {}

  Finish finish() const { return static_cast<Finish>(detail::api().result_finish(get())); }
  /// Which of `stops` ended it, -1 = none.
  std::int32_t stop_index() const { return detail::api().result_stop_index(get()); }
  /// Whole code points, without the stop string.
  std::string_view text() const {
    std::int64_t bytes = 0;
    const char* text = detail::api().result_text(get(), &bytes);
    return detail::view(text, bytes);
  }
  /// The bytes of the output's tokens, as they are.
  std::string_view bytes() const {
    std::int64_t count = 0;
    const char* bytes = detail::api().result_bytes(get(), &count);
    return detail::view(bytes, count);
  }
  Slice<const std::int32_t> prompt_ids() const { return slice(detail::api().result_prompt_ids); }
  Slice<const std::int32_t> token_ids() const { return slice(detail::api().result_token_ids); }
  /// Log-probability of each output token.
  Slice<const float> logprobs() const { return slice(detail::api().result_logprobs); }
  /// Of each prompt token from position max(prompt_logprobs_from, 1) on.
  Slice<const float> prompt_logprobs() const { return slice(detail::api().result_prompt_logprobs); }
  /// Most probable tokens at output index `index`, best first.
  Slice<const optima_token_logprob> top_logprobs(std::int64_t index) const {
    std::int64_t count = 0;
    const auto* top = detail::api().result_top_logprobs(get(), index, &count);
    return {top, static_cast<std::size_t>(count)};
  }
  /// A row of the vocabulary's length for each of RequestOptions::logits_positions.
  const std::vector<float>& logits() const { return logits_; }
  Outcome<Counters> counters() const {
    return detail::query<Counters>([&](Counters* out, optima_error** error) {
      return detail::api().result_counters(get(), out, error);
    });
  }

  /// An error where the request was cut short, for callers to whom a part is no answer: DEADLINE
  /// with deadline_ms as the limit, or CANCELLED; available is the number of tokens that there are.
  Outcome<void> require_whole() const {
    const auto tokens = static_cast<std::int64_t>(token_ids().size());
    const std::string after = " after " + std::to_string(tokens) + " tokens";
    if (finish() == Finish::deadline) {
      return detail::fail<void>(Error(
          Status::deadline, "deadline_ms of " + std::to_string(deadline_ms_) + " passed" + after,
          -1, tokens, deadline_ms_));
    }
    if (finish() == Finish::cancelled) {
      return detail::fail<void>(Error(Status::cancelled, "cancelled" + after, -1, tokens));
    }
    return Outcome<void>();
  }

  const optima_result* get() const noexcept { return handle_.get(); }

 private:
  template <typename Item>
  Slice<const Item> slice(const Item* (*read)(const optima_result*, std::int64_t*)) const {
    std::int64_t count = 0;
    const Item* items = read(get(), &count);
    return {items, static_cast<std::size_t>(count)};
  }

  detail::Owned<optima_result> handle_;
  std::vector<float> logits_;
  std::int64_t deadline_ms_ = 0;
};

/// A submitted request: a range of its events, to be read once, by one thread at a time. Destroying
/// it cancels what still runs. cancel() and done() may be called from any thread.
class Request {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    using pointer = const Event*;
    using reference = const Event&;
    Iterator() = default;
    explicit Iterator(Request* request) : request_(request) { ++*this; }
    const Event& operator*() const { return request_->seen_; }
    const Event* operator->() const { return &request_->seen_; }
    Iterator& operator++() {
      if (!request_->advance()) request_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.request_ == b.request_;
    }
    friend bool operator!=(const Iterator& a, const Iterator& b) { return !(a == b); }

   private:
    Request* request_ = nullptr;
  };

  Request(std::shared_ptr<detail::Hub> hub, optima_request* handle,
          std::shared_ptr<detail::Inbox> inbox, std::shared_ptr<detail::Pending> pending,
          std::int64_t deadline_ms)
      : hub_(std::move(hub)),
        handle_(handle),
        inbox_(std::move(inbox)),
        pending_(std::move(pending)),
        deadline_ms_(deadline_ms) {}
  Request(Request&& other) = default;
  Request& operator=(Request&& other) noexcept {
    Request(std::move(other)).swap(*this);
    return *this;
  }
  ~Request() {
    if (handle_ == nullptr) return;
    const std::uint64_t number = id();
    event_.reset();
    handle_.reset();
    hub_->close(number);
  }

  /// Waits for each event, the done event too. A request that failed throws its error behind it;
  /// with OPTIMA_NO_EXCEPTIONS result() has it.
  Iterator begin() { return Iterator(this); }
  Iterator end() { return Iterator(); }

  /// The next event, valid until the one after is taken; NULL behind the done event, or when none
  /// came within timeout_ms (negative = wait, 0 = take what is there).
  Outcome<const Event*> next(std::int64_t timeout_ms = -1) {
    event_.reset();
    return detail::then<const Event*>(
        hub_->next(*inbox_, handle_.get(), timeout_ms),
        [this](std::optional<detail::PolledEvent> event) -> const Event* {
          event_ = std::move(event);
          if (!event_) return nullptr;
          seen_ = detail::view(event_->get());
          return &seen_;
        });
  }
  Outcome<const Event*> try_next() { return next(0); }

  /// Ends the request; the session keeps the tokens so far, the done event still comes.
  void cancel() const noexcept { detail::api().request_cancel(handle_.get()); }
  bool done() const noexcept { return detail::api().request_done(handle_.get()) != 0; }
  std::uint64_t id() const noexcept { return detail::api().request_id(handle_.get()); }

  /// Waits until it is done; false when timeout_ms passed before (negative = forever).
  Outcome<bool> wait(std::int32_t timeout_ms = -1) {
    std::int32_t done = 0;
    return detail::invoke<bool>(
        [&](optima_error** error) {
          return detail::api().request_wait(handle_.get(), timeout_ms, &done, error);
        },
        [&] { return done != 0; });
  }

  /// What it produced, or the error it ended with, or what a callback of it threw; STATE before it
  /// is done. Once.
  Outcome<Result> result() {
    optima_result* out = nullptr;
    return detail::invoke<Result>(
        [&](optima_error** error) {
          const optima_status status = detail::api().request_result(handle_.get(), &out, error);
          if (done()) detail::rethrow(pending_->carried, error);
          return status;
        },
        [&] { return Result(out, std::move(pending_->logits), deadline_ms_); });
  }

  optima_request* get() const noexcept { return handle_.get(); }

 private:
  void swap(Request& other) noexcept {
    std::swap(hub_, other.hub_);
    std::swap(handle_, other.handle_);
    std::swap(inbox_, other.inbox_);
    std::swap(pending_, other.pending_);
    std::swap(event_, other.event_);
    std::swap(seen_, other.seen_);
    std::swap(deadline_ms_, other.deadline_ms_);
  }

  // Whether there was another event.
  bool advance() {
#ifdef OPTIMA_NO_EXCEPTIONS
    const Expected<const Event*> event = next();
    return event && *event != nullptr;
#else
    const bool failed = seen_.type == EventType::done && seen_.status != Status::ok;
    if (next() != nullptr) return true;
    if (failed) result();
    return false;
#endif
  }

  std::shared_ptr<detail::Hub> hub_;
  detail::Owned<optima_request> handle_;
  std::shared_ptr<detail::Inbox> inbox_;
  std::shared_ptr<detail::Pending> pending_;
  std::optional<detail::PolledEvent> event_;
  Event seen_;
  std::int64_t deadline_ms_ = 0;
};

/// One conversation: a sequence of tokens and their KV. Runs one request at a time (BUSY
/// otherwise), from any thread.
class Session {
 public:
  static Outcome<Session> create(const Model& model, const SessionOptions& options = {}) {
    const optima_session_options plain = describe(options);
    optima_session* handle = nullptr;
    return detail::invoke<Session>(
        [&](optima_error** error) {
          return detail::api().session_create(model.get(), &plain, &handle, error);
        },
        [&] { return Session(model, handle); });
  }

  /// Runs a request and waits for it. A cancelled or late request is a Result whose finish says so
  /// (Result::require_whole). Errors: ARG, BUSY, CONTEXT_FULL with prompt and context tokens,
  /// OOM_HOST.
  Outcome<Result> generate(const Prompt& prompt, const RequestOptions& options = {}) {
    detail::Callbacks callbacks;
    return run(prompt, options, callbacks, nullptr, detail::api().generate);
  }

  /// The same with every event on this thread: on_event(const Event&) returns a Verdict or nothing.
  /// What it throws cancels the request, rolls the session back, and is thrown from here.
  template <typename OnEvent>
  Outcome<Result> generate(const Prompt& prompt, const RequestOptions& options,
                           OnEvent&& on_event) {
    detail::EventCallbacks<std::remove_reference_t<OnEvent>> callbacks(on_event);
    return run(prompt, options, callbacks, &decltype(callbacks)::event, detail::api().generate);
  }

  /// Answers a conversation: generate() of what the model's chat template makes of it.
  Outcome<Result> chat(const std::vector<Message>& messages, const RequestOptions& options = {}) {
    return chat(messages, options, [](const Event&) {});
  }
  template <typename OnEvent>
  Outcome<Result> chat(const std::vector<Message>& messages, RequestOptions options,
                       OnEvent&& on_event) {
    options.flags |= request_flags::no_add_special;  // the template has written them
    return detail::then<Result>(model_.render(messages), [&](const std::string& prompt) {
      return generate(prompt, options, on_event);
    });
  }

  /// Queues a request and returns; its events come from the Request.
  Outcome<Request> submit(const Prompt& prompt, const RequestOptions& options = {}) {
    auto pending = std::make_shared<detail::Pending>();
    detail::StringTable strings;
    optima_request_desc desc = detail::describe(prompt, options, strings, *pending);
    detail::make_room(desc, pending->logits, vocabulary());
    desc.release = &detail::Pending::release;
    pending->self = pending;
    optima_request* handle = nullptr;
    std::shared_ptr<detail::Inbox> inbox;
    return detail::invoke<Request>(
        [&](optima_error** error) {
          optima_status status = OPTIMA_OK;
          inbox = model_.hub()->open([&] {
            status = detail::api().submit(get(), &desc, &handle, error);
            return handle;
          });
          return status;
        },
        [&] { return Request(model_.hub(), handle, inbox, pending, options.deadline_ms); });
  }

  /// The embedding of a prompt, in a session with Output::embedding.
  Outcome<std::vector<float>> embed(const Prompt& prompt, const RequestOptions& options = {}) {
    const auto embed = detail::find(&optima_api_v1::embed);
    if (embed == nullptr) return detail::fail<std::vector<float>>(detail::absent("optima_embed"));
    detail::Callbacks callbacks;
    return detail::then<std::vector<float>>(
        run(prompt, options, callbacks, nullptr, embed), [](const Result& result) {
          std::int64_t count = 0;
          const float* floats = detail::api().result_embedding(result.get(), &count);
          return std::vector<float>(floats, floats + count);
        });
  }

  /// Those of several texts (std::string, std::string_view), one row behind the other, as many in
  /// one pass as fit. All or nothing: CANCELLED and DEADLINE are errors here.
  template <typename Texts>
  Outcome<std::vector<float>> embed_texts(const Texts& texts, const RequestOptions& options = {}) {
    detail::StringTable table;
    detail::StringTable strings;
    detail::Callbacks callbacks;
    table.assign(texts);
    optima_request_desc desc = detail::to_c(options, strings);
    if (options.cancel != nullptr) desc.cancel = options.cancel->get();
    optima_buffer* buffer = nullptr;
    return detail::invoke_newer<std::vector<float>>(
        &optima_api_v1::embed_texts, "optima_embed_texts",
        [&](auto call, optima_error** error) {
          return call(get(), &desc, table.data(), table.bytes(), std::size(texts), &buffer, error);
        },
        [&] {
          const detail::Owned<optima_buffer> owned(buffer);
          std::int64_t count = 0;
          const float* floats = detail::api().buffer_floats(buffer, &count);
          return std::vector<float>(floats, floats + count);
        });
  }

  /// The tokens it holds, as of the last finished step.
  Outcome<std::vector<std::int32_t>> tokens() const {
    return detail::read_buffer<std::vector<std::int32_t>>(
        [&](optima_buffer** out, optima_error** error) {
          return detail::api().session_tokens(get(), out, error);
        },
        detail::ids_of);
  }
  /// Most tokens it holds.
  std::int64_t context_tokens() const { return detail::api().session_context_tokens(get()); }
  /// Forgets all tokens and gives their memory back.
  Outcome<void> reset() {
    return detail::invoke(
        [&](optima_error** error) { return detail::api().session_reset(get(), error); });
  }
  /// Keeps the first `count` tokens.
  Outcome<void> truncate(std::int64_t count) {
    return detail::invoke_newer<void>(
        &optima_api_v1::session_truncate, "optima_session_truncate",
        [&](auto call, optima_error** error) { return call(get(), count, error); },
        [] { return Outcome<void>(); });
  }
  /// What it holds of KV, as of now.
  Outcome<SessionKv> kv() const {
    auto out = detail::sized<SessionKv>();
    return detail::invoke_newer<SessionKv>(
        &optima_api_v1::session_kv_query, "optima_session_kv_query",
        [&](auto call, optima_error** error) { return call(get(), &out, error); },
        [&] { return out; });
  }

  /// Another session that holds the same tokens and shares their memory until one of the two writes
  /// on; an empty prompt with request_flags::append goes on from there.
  Outcome<Session> fork() const {
    optima_session* handle = nullptr;
    return detail::invoke_newer<Session>(
        &optima_api_v1::session_fork, "optima_session_fork",
        [&](auto call, optima_error** error) { return call(get(), &handle, error); },
        [&] { return Session(model_, handle); });
  }

  /// Writes tokens and KV to a file, which is there whole or not at all.
  Outcome<void> save(const std::string& path) const {
    return detail::invoke_newer<void>(
        &optima_api_v1::session_save_path, "optima_session_save_path",
        [&](auto call, optima_error** error) {
          return call(get(), path.data(), path.size(), error);
        },
        [] { return Outcome<void>(); });
  }
  /// A session that goes on where one of the same model, path and KV type was saved. Errors:
  /// VERSION for another version, model or KV type; FORMAT for what is damaged; CONTEXT_FULL; IO;
  /// OOM_HOST.
  static Outcome<Session> restore(const Model& model, const std::string& path,
                                  const SessionOptions& options = {}) {
    const optima_session_options plain = describe(options);
    optima_session* handle = nullptr;
    return detail::invoke_newer<Session>(
        &optima_api_v1::session_restore_path, "optima_session_restore_path",
        [&](auto call, optima_error** error) {
          return call(model.get(), &plain, path.data(), path.size(), &handle, error);
        },
        [&] { return Session(model, handle); });
  }

  const Model& model() const noexcept { return model_; }
  optima_session* get() const noexcept { return handle_.get(); }

 private:
  Session(const Model& model, optima_session* handle) : model_(model), handle_(handle) {}

  static optima_session_options describe(const SessionOptions& options) {
    optima_session_options plain = detail::to_c(options);
    if (options.draft_model != nullptr) plain.draft_model = options.draft_model->get();
    return plain;
  }

  std::int64_t vocabulary() const {
    auto info = detail::sized<ModelInfo>();
    detail::api().model_get_info(model_.get(), &info, nullptr);
    return info.vocabulary;
  }

  template <typename Run>
  Outcome<Result> run(const Prompt& prompt, const RequestOptions& options,
                      detail::Callbacks& callbacks, optima_on_event_fn on_event, Run call) {
    detail::StringTable strings;
    std::vector<float> logits;
    optima_request_desc desc = detail::describe(prompt, options, strings, callbacks);
    detail::make_room(desc, logits, options.logits_positions.empty() ? 0 : vocabulary());
    desc.on_event = on_event;
    optima_result* out = nullptr;
    return detail::invoke<Result>(
        [&](optima_error** error) {
          const optima_status status = call(get(), &desc, &out, error);
          const detail::Owned<optima_result> dropped(callbacks.carried ? out : nullptr);
          detail::rethrow(callbacks.carried, error);
          return status;
        },
        [&] { return Result(out, std::move(logits), options.deadline_ms); });
  }

  Model model_;
  detail::Owned<optima_session> handle_;
};

}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
