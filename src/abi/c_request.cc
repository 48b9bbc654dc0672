// optima_generate, optima_embed, optima_submit and optima_request: where a request enters the
// engine and where its result leaves. The host's release hook is taken from the description first,
// so that it is called exactly once however the call ends.

#include <functional>

#include "abi/event.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/request_spec.h"
#include "abi/result.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

Result<optima_request_desc> read_desc(const optima_request_desc* desc) {
  if (desc == nullptr) return Status(Code::invalid_argument, "desc: NULL");
  return read_struct("request desc", desc);
}

// Hands the events of one blocking request to the host, on the host's thread.
class Listener {
 public:
  Listener(EngineBox& box, const optima_request_desc& desc)
      : box_(box), on_event_(desc.on_event), user_(desc.user) {}

  engine::Verdict operator()(const engine::Event& event) {
    switch (call(event)) {
      case OPTIMA_CONTINUE:
        return engine::Verdict::go_on;
      case OPTIMA_STOP:
        return engine::Verdict::stop;
      default:
        return engine::Verdict::cancel;
    }
  }

  const Caught& caught() const { return caught_; }

 private:
  int32_t call(const engine::Event& event) {
    optima_event view = describe(event);
    view.struct_size = sizeof view;
    view.user = user_;
    int32_t verdict = OPTIMA_CANCEL;
    box_.enter_callback();
    const Caught caught = contain([&] { verdict = on_event_(user_, &view); });
    box_.leave_callback();
    if (caught.code == Code::ok) return verdict;
    caught_ = caught;
    return OPTIMA_CANCEL;
  }

  EngineBox& box_;
  optima_on_event_fn on_event_;
  void* user_;
  Caught caught_;
};

Status run(const optima_session* session, const optima_request_desc* in,
           engine::SessionOutput purpose, optima_result** out) {
  OPTIMA_ASSIGN(const auto box, enter(session));
  OPTIMA_ASSIGN(const optima_request_desc desc, read_desc(in));
  OPTIMA_ASSIGN(engine::RequestSpec spec, read_request(desc, box->model->engine, purpose));
  EngineBox& engine_box = *box->model->engine;
  if (engine_box.in_callback()) {
    return Status(Code::busy, "called from a callback of the same engine");
  }
  Listener listener(engine_box, desc);
  std::function<engine::Verdict(const engine::Event&)> on_event;
  if (desc.on_event != nullptr) on_event = std::ref(listener);
  OPTIMA_ASSIGN(const auto request,
                engine_box.engine->generate(box->session, std::move(spec), on_event));
  if (listener.caught().code != Code::ok) {
    return Status(Code::internal, text("on_event threw: ", listener.caught().text));
  }
  const engine::RequestResult& result = request->result();
  OPTIMA_TRY(result.status);
  if (out != nullptr) *out = make_result(result);
  return {};
}

Status submit(const optima_session* session, const optima_request_desc* in, ReleaseOnce hook,
              optima_request** out) {
  OPTIMA_ASSIGN(const auto session_box, enter(session));
  OPTIMA_ASSIGN(const optima_request_desc desc, read_desc(in));
  if (desc.on_event != nullptr) {
    return Status(Code::invalid_argument,
                  "on_event: must be NULL for optima_submit, events come from optima_poll");
  }
  OPTIMA_ASSIGN(engine::RequestSpec spec,
                read_request(desc, session_box->model->engine, session_box->session->output()));
  EngineBox& engine_box = *session_box->model->engine;

  // All memory first: once the engine has the request, nothing may fail.
  auto box = std::make_shared<RequestBox>();
  auto handle = std::make_unique<optima_request>(box);
  auto cookie = std::make_shared<RequestCookie>();
  cookie->user = desc.user;
  cookie->release = std::move(hook);
  box->session = session_box;
  box->id = engine_box.add_cookie(cookie);
  spec.user = cookie.get();
  auto request = engine_box.engine->submit(session_box->session, std::move(spec));
  if (!request.ok()) {
    engine_box.take_cookie(cookie.get());
    return request.take_status();
  }
  box->request = request.take();
  session_box->remember(box->request);
  *out = handle.release();
  return {};
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Status;
using optima::engine::SessionOutput;

optima_status optima_generate(optima_session* session, const optima_request_desc* desc,
                              optima_result** out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out != nullptr) *out = nullptr;
    const ReleaseOnce hook = take_hook(desc);
    return run(session, desc, SessionOutput::tokens, out);
  });
}

optima_status optima_embed(optima_session* session, const optima_request_desc* desc,
                           optima_result** out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out != nullptr) *out = nullptr;
    const ReleaseOnce hook = take_hook(desc);
    return run(session, desc, SessionOutput::embedding, out);
  });
}

optima_status optima_submit(optima_session* session, const optima_request_desc* desc,
                            optima_request** out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    ReleaseOnce hook = take_hook(desc);
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    return submit(session, desc, std::move(hook), out);
  });
}

optima_status optima_request_cancel(const optima_request* request) noexcept {
  return guard(Fallback<optima_status>{OPTIMA_E_INTERNAL}, [&]() -> optima_status {
    // Not enter(): a signal handler must not count references or make messages.
    if (!live(request)) return OPTIMA_E_ARG;
    if (forked(engine_of(*request->box))) return OPTIMA_E_FORKED;
    request->box->request->cancel();
    return OPTIMA_OK;
  });
}

uint64_t optima_request_id(const optima_request* request) noexcept {
  return guard(Fallback<uint64_t>{0},
               [&]() -> uint64_t { return live(request) ? request->box->id : 0; });
}

int32_t optima_request_done(const optima_request* request) noexcept {
  return guard(Fallback<int32_t>{0}, [&]() -> int32_t {
    const auto box = enter(request);
    return box.ok() && (*box)->request->done() ? 1 : 0;
  });
}

optima_status optima_request_wait(const optima_request* request, int32_t timeout_ms, int32_t* done,
                                  optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (done != nullptr) *done = 0;
    OPTIMA_ASSIGN(const auto box, enter(request));
    if (box->session->model->engine->in_callback()) {
      return Status(Code::busy, "optima_request_wait: called from a callback");
    }
    const bool is_done = box->request->wait(timeout_ms);
    if (done != nullptr) *done = is_done ? 1 : 0;
    return {};
  });
}

optima_status optima_request_result(const optima_request* request, optima_result** out,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(request));
    if (!box->request->done()) {
      return Status(Code::invalid_state, optima::text("request ", box->id, ": not done yet"));
    }
    const optima::engine::RequestResult& result = box->request->result();
    OPTIMA_TRY(result.status);
    *out = make_result(result);
    return {};
  });
}

void optima_request_destroy(optima_request* request) noexcept {
  guard([&] {
    if (const auto box = release(request)) finish(*box->session->model->engine, *box->request);
  });
}
