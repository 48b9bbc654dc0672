// Moving the KV of preempted requests to where the host keeps it, and back. The hub's lock is let
// go of for each of the host's functions; meanwhile only the driving thread touches a request that
// moves, and its session is busy.
#include "base/text.h"
#include "engine/engine_impl.h"

namespace optima::engine {
namespace {

class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace

bool EngineImpl::move_spills(std::unique_lock<std::mutex>& lock) {
  discard_spills(lock);  // first: what is written may want the host's room
  bool any = !spills_.empty();
  for (RequestImpl* request : spills_) spill(*request, lock);
  spills_.clear();
  for (RequestImpl* request : unspills_) any = unspill(*request, lock) || any;
  unspills_.clear();
  discard_spills(lock);
  return any;
}

void EngineImpl::discard_spills(std::unique_lock<std::mutex>& lock) {
  for (const uint64_t id : discards_) {
    const Unlocked unlocked(lock);
    options_.spill.discard(id);
  }
  discards_.clear();
}

// Whether it was written or not, the pages are free then.
void EngineImpl::spill(RequestImpl& request, std::unique_lock<std::mutex>& lock) {
  const uint64_t id = ++spilled_;
  const int64_t length = request.session()->table_.length();
  int64_t bytes_written = 0;
  const auto write = [&](const void* from, int64_t bytes) {
    const Unlocked unlocked(lock);
    if (request.is_given_up() || !options_.spill.write(id, from, bytes)) return false;
    bytes_written += bytes;
    return true;
  };
  const Status status = request.session()->spill(id, write);
  hub_->metrics.spilled_bytes += static_cast<uint64_t>(bytes_written);
  if (status.ok()) {
    request.set_spill({id, length});
  } else {
    discards_.push_back(id);
    if (!request.is_given_up()) fail_spill(status, lock);
  }
  request.session()->drop_kv();
  request.end_moving();
}

// False when there were no pages for it: it waits again.
bool EngineImpl::unspill(RequestImpl& request, std::unique_lock<std::mutex>& lock) {
  const uint64_t id = request.spill().id;
  int64_t bytes_read = 0;
  const auto read = [&](void* into, int64_t bytes) {
    const Unlocked unlocked(lock);
    if (request.is_given_up() || !options_.spill.read(id, into, bytes_read, bytes)) return false;
    bytes_read += bytes;
    return true;
  };
  const Status status = request.session()->unspill(id, read);
  request.end_moving();
  hub_->metrics.restored_bytes += static_cast<uint64_t>(bytes_read);
  if (!status.ok()) {
    request.session()->drop_kv();
    request.stop_running();
    if (status.code() == Code::oom_host) return false;
    if (!request.is_given_up()) fail_spill(status, lock);
  }
  request.set_spill({});
  discards_.push_back(id);
  return true;
}

void EngineImpl::fail_spill(const Status& status, std::unique_lock<std::mutex>& lock) {
  ++hub_->metrics.spill_failures;
  const Unlocked unlocked(lock);
  log(LogLevel::warning,
      text("the KV of a preempted request is computed again: ", status.message()));
}

}  // namespace optima::engine
