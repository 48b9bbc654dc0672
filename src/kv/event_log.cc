// See event_log.h. After a loss nothing is recorded until the restart, which says it all.
#include "kv/event_log.h"

#include <utility>

namespace optima::kv {

void EventLog::add(const KvEvent& event) noexcept {
  if (!on()) return;
  if (lost_ > 0) {
    ++lost_;
  } else if (count_ == ring_.size()) {
    lost_ = count_ + (backlog_.size() - backlog_taken_) + 1;
    count_ = 0;
    backlog_.clear();
    backlog_taken_ = 0;
  } else {
    ring_[(begin_ + count_++) % ring_.size()] = event;
  }
}

void EventLog::restart(std::vector<KvEvent> all) noexcept {
  lost_untold_ += std::exchange(lost_, 0);
  backlog_ = std::move(all);
  backlog_taken_ = 0;
}

KvEventsTaken EventLog::take(std::span<KvEvent> out) noexcept {
  KvEventsTaken taken{0, std::exchange(lost_untold_, 0)};
  while (taken.count < out.size() && backlog_taken_ < backlog_.size())
    out[taken.count++] = backlog_[backlog_taken_++];
  if (backlog_taken_ == backlog_.size()) {
    backlog_ = {};
    backlog_taken_ = 0;
  }
  while (taken.count < out.size() && count_ > 0) {
    out[taken.count++] = ring_[begin_];
    begin_ = (begin_ + 1) % ring_.size();
    --count_;
  }
  return taken;
}

}  // namespace optima::kv
