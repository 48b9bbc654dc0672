// optima_poll and optima_event_release. A polled event owns its bytes: the C struct points into an
// Owner that optima_event_release frees, together with, for the last event of a request, the
// host's cookie.

#include <cstddef>
#include <cstring>

#include "abi/event.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/structs.h"

namespace optima::abi {

// The two structs are the same memory; tests hold both to it.
static_assert(sizeof(sampling::TokenLogprob) == sizeof(optima_token_logprob));
static_assert(offsetof(sampling::TokenLogprob, token) == offsetof(optima_token_logprob, token));
static_assert(offsetof(sampling::TokenLogprob, logprob) == offsetof(optima_token_logprob, logprob));

const optima_token_logprob* as_c(const std::vector<sampling::TokenLogprob>& top) {
  return top.empty() ? nullptr : reinterpret_cast<const optima_token_logprob*>(top.data());
}

optima_event describe(const engine::Event& event) {
  optima_event out;
  std::memset(&out, 0, sizeof out);
  out.type = static_cast<optima_event_type>(event.type);
  out.text = event.text.c_str();
  out.text_bytes = static_cast<int64_t>(event.text.size());
  out.bytes = event.bytes.c_str();
  out.bytes_count = static_cast<int64_t>(event.bytes.size());
  out.top = as_c(event.top);
  out.top_count = static_cast<int64_t>(event.top.size());
  out.token = event.token;
  out.logprob = event.logprob;
  out.index = event.index;
  out.tokens_done = event.tokens_done;
  out.tokens_total = event.tokens_total;
  out.finish = static_cast<optima_finish>(event.finish);
  if (event.type == engine::EventType::done && event.request != nullptr && event.request->done()) {
    out.status = static_cast<optima_status>(event.request->result().status.code());
  }
  return out;
}

namespace {

constexpr size_t kEventsMax = 64;  // of one call; owners are made before events are taken

struct Owner {
  engine::Event event;
  std::shared_ptr<RequestCookie> cookie;
};

// The tail of what `event_size` says is the host's newer struct: zero.
void put(optima_event* out, size_t event_size, EngineBox& box, std::unique_ptr<Owner> owner) {
  const void* cookie = owner->event.request == nullptr ? nullptr : owner->event.request->user();
  const bool last = owner->event.type == engine::EventType::done;
  owner->cookie = last ? box.take_cookie(cookie) : box.find_cookie(cookie);
  optima_event event = describe(owner->event);
  if (owner->cookie != nullptr) {
    event.request_id = owner->cookie->id;
    event.user = owner->cookie->user;
  }
  event.owner = owner.release();
  write_struct(out, event_size, event);
}

Status poll(EngineBox& box, optima_event* events, size_t capacity, size_t event_size,
            int32_t timeout_ms, size_t* count) {
  std::vector<std::unique_ptr<Owner>> owners(std::min(capacity, kEventsMax));
  for (auto& owner : owners) owner = std::make_unique<Owner>();
  std::vector<engine::Event> taken = box.engine->poll(owners.size(), timeout_ms);
  for (size_t i = 0; i < taken.size(); ++i) {
    owners[i]->event = std::move(taken[i]);
    auto* out =
        reinterpret_cast<optima_event*>(reinterpret_cast<unsigned char*>(events) + i * event_size);
    put(out, event_size, box, std::move(owners[i]));
    *count = i + 1;
  }
  return {};
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Status;

optima_status optima_poll(optima_engine* engine, optima_event* events, size_t capacity,
                          size_t event_size, int32_t timeout_ms, size_t* count,
                          optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (count != nullptr) *count = 0;
    OPTIMA_ASSIGN(const auto box, enter(engine));
    if (count == nullptr) return Status(Code::invalid_argument, "count: NULL");
    OPTIMA_TRY(check_array("events", events, capacity, sizeof(optima_event)));
    const auto size = static_cast<uint32_t>(std::min<size_t>(event_size, UINT32_MAX));
    OPTIMA_TRY(check_size("event_size", size, kSizeMin<optima_event>));
    if (box->in_callback()) return Status(Code::busy, "optima_poll: called from a callback");
    if (capacity == 0) return {};
    return poll(*box, events, capacity, event_size, timeout_ms, count);
  });
}

optima_status optima_engine_wakeup_fd(optima_engine* engine, int32_t* fd,
                                      optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (fd != nullptr) *fd = -1;
    OPTIMA_ASSIGN(const auto box, enter(engine));
    if (fd == nullptr) return Status(Code::invalid_argument, "fd: NULL");
    OPTIMA_ASSIGN(*fd, box->engine->wakeup_fd());
    return {};
  });
}

void optima_event_release(optima_event* event) noexcept {
  guard([&] {
    if (event == nullptr || event->owner == nullptr) return;
    auto* owner = static_cast<Owner*>(event->owner);
    const uint32_t size = event->struct_size;
    std::memset(event, 0, std::min<size_t>(size, sizeof *event));
    event->struct_size = size;
    delete owner;
  });
}
