// Handles: what the host holds. A handle is a small block with a magic number of its type and a
// counted pointer to a box; the boxes keep what they need alive (session -> model -> engine), so
// that handles may be destroyed in any order, also while a call that entered through them runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "abi/hook.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "optima/optima.h"

namespace optima::abi {

// The host's cookie of a submitted request. Lives until its done event has been released or can
// no longer be delivered; its end calls the host's release hook.
struct RequestCookie {
  uint64_t id = 0;
  void* user = nullptr;
  ReleaseOnce release;
};

// One engine and what the boundary must know about it.
struct EngineBox {
  EngineBox() = default;
  ~EngineBox() { engine.reset(); }  // Before the cookies: a running request may use their buffers.
  EngineBox(const EngineBox&) = delete;
  EngineBox& operator=(const EngineBox&) = delete;

  const int64_t pid = process_id();
  engine::Drive drive = engine::Drive::library;
  std::shared_ptr<HostMemory> host_memory;  // Outlives the engine.
  std::shared_ptr<engine::Engine> engine;

  // Cookies of submitted requests whose done event is still to come.
  uint64_t add_cookie(std::shared_ptr<RequestCookie> cookie);
  std::shared_ptr<RequestCookie> find_cookie(const void* cookie);
  std::shared_ptr<RequestCookie> take_cookie(const void* cookie);
  // The handle is gone: cancels everything, waits, and gives the cookies back. From inside a
  // callback it only cancels; the call that called back does the rest.
  void close();

  // Whether this thread is inside a callback of this engine.
  bool in_callback();
  void enter_callback();
  void leave_callback();

 private:
  std::mutex mutex_;
  uint64_t last_id_ = 0;
  std::map<const void*, std::shared_ptr<RequestCookie>> cookies_;
  std::vector<std::thread::id> callbacks_;
};

struct ModelBox {
  std::shared_ptr<EngineBox> engine;
  std::shared_ptr<engine::Model> model;
  std::string architecture;
  std::string name;
  std::string chat_template;
};

struct SessionBox {
  std::shared_ptr<ModelBox> model;
  std::shared_ptr<engine::Session> session;

  // Remembers the last submitted request, so that close() can wait for its end.
  void remember(const std::shared_ptr<engine::Request>& request);
  // The handle is gone: cancels what runs, refuses more, and waits as finish() does.
  void close();

 private:
  std::mutex mutex_;
  std::weak_ptr<engine::Request> submitted_;
};

struct RequestBox {
  std::shared_ptr<SessionBox> session;
  std::shared_ptr<engine::Request> request;
  uint64_t id = 0;
};

// Cancels a request and waits until it is done, two seconds at most. Does not wait in a callback,
// nor with Drive::host, where the caller may be the one who turns the engine.
void finish(EngineBox& box, engine::Request& request);

// Handle types have `kMagic`, `kName`, `box` and, for the fork check, engine_of(*box).
inline const EngineBox& engine_of(const EngineBox& box) {
  return box;
}
inline const EngineBox& engine_of(const ModelBox& box) {
  return *box.engine;
}
inline const EngineBox& engine_of(const SessionBox& box) {
  return *box.model->engine;
}
inline const EngineBox& engine_of(const RequestBox& box) {
  return *box.session->model->engine;
}

template <typename Handle>
bool live(const Handle* handle) {
  return handle != nullptr && reinterpret_cast<uintptr_t>(handle) % alignof(Handle) == 0 &&
         handle->magic.load(std::memory_order_relaxed) == Handle::kMagic;
}

template <typename Handle>
Status check(const Handle* handle) {
  if (handle == nullptr) return Status(Code::invalid_argument, text(Handle::kName, ": NULL"));
  if (!live(handle)) {
    return Status(Code::invalid_argument, text(Handle::kName, ": not a live handle of this type"));
  }
  return {};
}

inline bool forked(const EngineBox& box) {
  return process_id() != box.pid;
}

// The box behind a handle, held for the length of the call.
template <typename Handle>
auto enter(const Handle* handle) -> Result<decltype(handle->box)> {
  OPTIMA_TRY(check(handle));
  if (forked(engine_of(*handle->box))) {
    return Status(Code::forked,
                  text(Handle::kName, ": made in process ", engine_of(*handle->box).pid,
                       ", used in process ", process_id()));
  }
  return handle->box;
}

// For destroy functions: the box, or null for what is not a live handle. The handle is freed. In
// a forked child the box is leaked: the threads that its end would join do not exist there.
template <typename Handle>
auto release(Handle* handle) -> decltype(handle->box) {
  if (!live(handle)) return nullptr;
  if (handle->magic.exchange(0) != Handle::kMagic) return nullptr;
  auto box = std::move(handle->box);
  delete handle;
  if (!forked(engine_of(*box))) return box;
  using Box = decltype(box);
  alignas(Box) unsigned char leaked[sizeof(Box)];
  new (leaked) Box(std::move(box));
  return nullptr;
}

}  // namespace optima::abi

struct optima_engine {
  static constexpr uint32_t kMagic = 0x4f45'4e47;
  static constexpr const char* kName = "engine";
  explicit optima_engine(std::shared_ptr<optima::abi::EngineBox> b) : box(std::move(b)) {}
  std::atomic<uint32_t> magic{kMagic};
  std::shared_ptr<optima::abi::EngineBox> box;
};

struct optima_model {
  static constexpr uint32_t kMagic = 0x4f4d'4f44;
  static constexpr const char* kName = "model";
  explicit optima_model(std::shared_ptr<optima::abi::ModelBox> b) : box(std::move(b)) {}
  std::atomic<uint32_t> magic{kMagic};
  std::shared_ptr<optima::abi::ModelBox> box;
};

struct optima_session {
  static constexpr uint32_t kMagic = 0x4f53'4553;
  static constexpr const char* kName = "session";
  explicit optima_session(std::shared_ptr<optima::abi::SessionBox> b) : box(std::move(b)) {}
  std::atomic<uint32_t> magic{kMagic};
  std::shared_ptr<optima::abi::SessionBox> box;
};

struct optima_request {
  static constexpr uint32_t kMagic = 0x4f52'4551;
  static constexpr const char* kName = "request";
  explicit optima_request(std::shared_ptr<optima::abi::RequestBox> b) : box(std::move(b)) {}
  std::atomic<uint32_t> magic{kMagic};
  std::shared_ptr<optima::abi::RequestBox> box;
};

struct optima_cancel {
  static constexpr uint32_t kMagic = 0x4f43'4e43;
  static constexpr const char* kName = "cancel";
  explicit optima_cancel(std::shared_ptr<optima::engine::CancelFlag> f) : flag(std::move(f)) {}
  std::atomic<uint32_t> magic{kMagic};
  std::shared_ptr<optima::engine::CancelFlag> flag;
};

struct optima_result {
  static constexpr uint32_t kMagic = 0x4f52'534c;
  static constexpr const char* kName = "result";
  std::atomic<uint32_t> magic{kMagic};
  optima::engine::RequestResult value;
  std::vector<int32_t> token_ids;
  std::vector<float> logprobs;
};

struct optima_buffer {
  static constexpr uint32_t kMagic = 0x4f42'5546;
  static constexpr const char* kName = "buffer";
  std::atomic<uint32_t> magic{kMagic};
  std::variant<std::string, std::vector<int32_t>, std::vector<float>> content;
};

struct optima_error {
  static constexpr uint32_t kMagic = 0x4f45'5252;
  static constexpr const char* kName = "error";
  explicit optima_error(optima::Status s) : status(std::move(s)) {}
  std::atomic<uint32_t> magic{kMagic};
  optima::Status status;
};
