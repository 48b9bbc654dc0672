// The events of submitted requests until poll() takes them, and the descriptor that is readable
// meanwhile. Under the hub's lock.
#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <vector>

#include "base/wakeup.h"
#include "engine/request.h"

namespace optima::engine {

class EventQueue {
 public:
  EventQueue() = default;
  ~EventQueue() { close(); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  bool empty() const { return events_.empty(); }
  void push(Event event) {
    events_.push_back(std::move(event));
    if (wakeup_) wakeup_->raise();
  }
  std::vector<Event> take(size_t events_max) {
    const auto count = static_cast<ptrdiff_t>(std::min(events_max, events_.size()));
    std::vector<Event> out(std::make_move_iterator(events_.begin()),
                           std::make_move_iterator(events_.begin() + count));
    events_.erase(events_.begin(), events_.begin() + count);
    if (wakeup_ && events_.empty() && !closed_) wakeup_->lower();
    return out;
  }
  // Drops all events. The descriptor is readable for good: whoever waits for it has to look.
  void close() {
    events_.clear();
    closed_ = true;
    if (wakeup_) wakeup_->raise();
  }
  // A descriptor of the caller's own, readable while there are events and after close().
  Result<int> wakeup_fd() {
    if (!wakeup_) {
      OPTIMA_ASSIGN(Wakeup made, Wakeup::create());
      wakeup_.emplace(std::move(made));
      if (!events_.empty() || closed_) wakeup_->raise();
    }
    return wakeup_->duplicate();
  }

 private:
  std::deque<Event> events_;
  std::optional<Wakeup> wakeup_;  // once asked for
  bool closed_ = false;
};

}  // namespace optima::engine
