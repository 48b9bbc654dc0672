// What becomes known and unknown in a pool's prefix index, as a stream, so that a router elsewhere
// can keep a mirror of it: how much of a prompt this pool holds already.
//
// The log is bounded. A reader that is too slow loses what it has not taken, is told how much, and
// begins anew with `cleared` and all that is known: a mirror is right again at the end of it.
// Without a lock: the page pool has one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/prefix_index.h"

namespace optima::kv {

enum class KvEventType : int32_t {
  stored = 1,   // a page of a block and group is known from now on
  removed = 2,  // it is not any longer
  cleared = 3,  // nothing is known
};

struct KvEvent {
  KvEventType type = KvEventType::cleared;
  int32_t group = -1;
  BlockHash hash = 0;
  BlockHash parent = 0;                       // stored: of the block before, or the root
  std::array<int32_t, kPageTokens> tokens{};  // stored: the block's
};

struct KvEventsTaken {
  size_t count = 0;
  uint64_t lost = 0;  // before these
};

class EventLog {
 public:
  // Keeps up to `capacity` events; 0 = none at all.
  explicit EventLog(int64_t capacity) : ring_(static_cast<size_t>(capacity)) {}

  bool on() const { return !ring_.empty(); }
  void add(const KvEvent& event) noexcept;
  // Whether events were lost since: then restart() comes before take().
  bool must_restart() const { return lost_ > 0; }
  // The stream goes on with these, and counts what was lost.
  void restart(std::vector<KvEvent> all) noexcept;
  KvEventsTaken take(std::span<KvEvent> out) noexcept;

 private:
  std::vector<KvEvent> ring_;
  size_t begin_ = 0, count_ = 0;  // in the ring
  uint64_t lost_ = 0;             // not yet followed by a restart
  uint64_t lost_untold_ = 0;
  std::vector<KvEvent> backlog_;  // comes before the ring
  size_t backlog_taken_ = 0;
};

}  // namespace optima::kv
