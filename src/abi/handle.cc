// Boxes: what one engine and one session remember for the boundary. Locks here are held for a few
// instructions and never while the host's code or the engine runs.

#include "abi/handle.h"

#include <algorithm>

namespace optima::abi {

uint64_t EngineBox::add_cookie(std::shared_ptr<RequestCookie> cookie) {
  const std::lock_guard lock(mutex_);
  RequestCookie& added = *cookie;
  cookies_.emplace(&added, std::move(cookie));
  added.id = ++last_id_;
  return added.id;
}

std::shared_ptr<RequestCookie> EngineBox::find_cookie(const void* cookie) {
  const std::lock_guard lock(mutex_);
  const auto found = cookies_.find(cookie);
  return found == cookies_.end() ? nullptr : found->second;
}

std::shared_ptr<RequestCookie> EngineBox::take_cookie(const void* cookie) {
  const std::lock_guard lock(mutex_);
  const auto found = cookies_.find(cookie);
  if (found == cookies_.end()) return nullptr;
  auto taken = std::move(found->second);
  cookies_.erase(found);
  return taken;
}

bool EngineBox::in_callback() {
  const std::lock_guard lock(mutex_);
  return std::find(callbacks_.begin(), callbacks_.end(), std::this_thread::get_id()) !=
         callbacks_.end();
}

void EngineBox::enter_callback() {
  const std::lock_guard lock(mutex_);
  callbacks_.push_back(std::this_thread::get_id());
}

void EngineBox::leave_callback() {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(callbacks_.begin(), callbacks_.end(), std::this_thread::get_id());
  if (found != callbacks_.end()) callbacks_.erase(found);
}

void EngineBox::close() {
  const bool deferred = in_callback();
  engine->close();
  if (deferred) return;
  std::map<const void*, std::shared_ptr<RequestCookie>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(cookies_);
}

void SessionBox::remember(const std::shared_ptr<engine::Request>& request) {
  const std::lock_guard lock(mutex_);
  submitted_ = request;
}

void SessionBox::close() {
  session->close();
  std::shared_ptr<engine::Request> request;
  {
    const std::lock_guard lock(mutex_);
    request = submitted_.lock();
  }
  if (request != nullptr) finish(*model->engine, *request);
}

void finish(EngineBox& box, engine::Request& request) {
  constexpr int64_t kWaitMs = 2000;
  if (request.done()) return;
  request.cancel();
  if (box.drive == engine::Drive::host || box.in_callback()) return;
  request.wait(kWaitMs);
}

}  // namespace optima::abi
