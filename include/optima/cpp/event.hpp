// What a request is given and what it tells: prompts, cancel latches, events, and the way of an
// event from C to a function that may throw.
#pragma once

#include <type_traits>

#include "optima/cpp/library.hpp"

namespace optima {
inline namespace OPTIMA_CPP_MODE {

/// A latch that stops every request that names it (RequestOptions::cancel), now and later: before
/// its start, in the prompt and in the output. May be triggered from any thread, and from signal
/// handlers; may be destroyed while requests that name it run.
class Cancel {
 public:
  static Outcome<Cancel> create() {
    return detail::after<Cancel>(detail::use_library, [] {
      optima_cancel* handle = nullptr;
      return detail::invoke<Cancel>(
          [&](optima_error** error) { return detail::api().cancel_create(&handle, error); },
          [&] { return Cancel(handle); });
    });
  }
  void trigger() const noexcept { detail::api().cancel_trigger(handle_.get()); }
  bool triggered() const noexcept { return detail::api().cancel_triggered(handle_.get()) != 0; }
  optima_cancel* get() const noexcept { return handle_.get(); }

 private:
  explicit Cancel(optima_cancel* handle) : handle_(handle) {}
  detail::Owned<optima_cancel> handle_;
};

/// A prompt as text (any bytes) or as token ids. A view: what it was made from must live until the
/// call returns.
class Prompt {
 public:
  Prompt(const char* text) : text_(text) {}
  Prompt(std::string_view text) : text_(text) {}
  Prompt(const std::string& text) : text_(text) {}
  Prompt(Slice<const std::int32_t> ids) : ids_(ids), has_ids_(true) {}
  Prompt(const std::vector<std::int32_t>& ids) : ids_(ids.data(), ids.size()), has_ids_(true) {}
  void put(optima_request_desc& desc) const {
    static constexpr std::int32_t kNoIds = 0;
    if (has_ids_) {
      desc.prompt_ids = ids_.empty() ? &kNoIds : ids_.data();
      desc.prompt_id_count = ids_.size();
    } else {
      desc.prompt = text_.empty() ? "" : text_.data();
      desc.prompt_bytes = text_.size();
    }
  }

 private:
  std::string_view text_;
  Slice<const std::int32_t> ids_;
  bool has_ids_ = false;
};

/// What happened to a request. A view: valid until the callback returns, or the next event is
/// taken.
struct Event {
  EventType type{};
  /// Text that became complete: whole code points, may be empty.
  std::string_view text;
  /// Exactly the token's bytes, may be an incomplete code point.
  std::string_view bytes;
  /// Most probable tokens, best first; as many as RequestOptions::logprobs asked.
  Slice<const optima_token_logprob> top;
  /// Token id, -1 for other types.
  std::int32_t token = -1;
  float logprob = 0;
  /// Output index of the token.
  std::int64_t index = 0;
  /// Prompt tokens processed, and in all.
  std::int64_t tokens_done = 0;
  std::int64_t tokens_total = 0;
  /// Why it ended, and the status of a request that failed (EventType::done).
  Finish finish{};
  Status status{};
};

namespace detail {

inline std::string_view view(const char* data, std::int64_t size) {
  return data == nullptr ? std::string_view()
                         : std::string_view(data, static_cast<std::size_t>(size));
}

inline Event view(const optima_event& event) {
  Event seen;
  seen.type = static_cast<EventType>(event.type);
  seen.text = view(event.text, event.text_bytes);
  seen.bytes = view(event.bytes, event.bytes_count);
  seen.top = {event.top, static_cast<std::size_t>(event.top_count)};
  seen.token = event.token;
  seen.logprob = event.logprob;
  seen.index = event.index;
  seen.tokens_done = event.tokens_done;
  seen.tokens_total = event.tokens_total;
  seen.finish = static_cast<Finish>(event.finish);
  seen.status = static_cast<Status>(event.status);
  return seen;
}

// What `user` of a request points to, and what its callbacks threw.
struct Callbacks {
  LogitsFunction on_logits;
  Carried carried;

  static std::int32_t logits(void* user, float* logits, std::int64_t vocabulary,
                             const std::int32_t* tokens, std::int64_t count) noexcept {
    auto& self = *static_cast<Callbacks*>(user);
    return self.carried.run<std::int32_t>(1, [&]() -> std::int32_t {
      self.on_logits({logits, static_cast<std::size_t>(vocabulary)},
                     {tokens, static_cast<std::size_t>(count)});
      return 0;
    });
  }
};

// The same with a function for events, which returns a Verdict or nothing.
template <typename OnEvent>
struct EventCallbacks : Callbacks {
  explicit EventCallbacks(OnEvent& function) : on_event(function) {}
  OnEvent& on_event;

  static std::int32_t event(void* user, const optima_event* event) noexcept {
    auto& self = *static_cast<EventCallbacks*>(static_cast<Callbacks*>(user));
    return self.carried.template run<std::int32_t>(OPTIMA_CANCEL, [&]() -> std::int32_t {
      const Event seen = view(*event);
      if constexpr (std::is_void_v<std::invoke_result_t<OnEvent&, const Event&>>) {
        self.on_event(seen);
        return OPTIMA_CONTINUE;
      } else {
        return static_cast<std::int32_t>(self.on_event(seen));
      }
    });
  }
};

// The request as C takes it; points into prompt, options, strings and callbacks.
inline optima_request_desc describe(const Prompt& prompt, const RequestOptions& options,
                                    StringTable& strings, Callbacks& callbacks) {
  optima_request_desc desc = to_c(options, strings);
  prompt.put(desc);
  if (options.cancel != nullptr) desc.cancel = options.cancel->get();
  if (options.on_logits) {
    callbacks.on_logits = options.on_logits;
    desc.on_logits = &Callbacks::logits;
  }
  desc.user = &callbacks;
  return desc;
}

}  // namespace detail
}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
