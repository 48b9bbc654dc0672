// Who comes first: an order of requests that no later arrival can upset for long.
//
// - A level is a priority that rises with age: kLevelNs of waiting are worth one. It counts whole
//   periods of the clock at submission, so that it never changes and two requests never overtake
//   each other twice; what arrives later is below in the end, whatever its priority.
// - Within a level the earliest deadline comes first, requests without one last.
// - Then the session that has been served least, by start-time fair queueing (Goyal, Vin and Chen
//   1996): a request's tag is what its session had been served when it arrived, but no less than
//   the tag of what was served last. So a stream of requests in one session yields to others, a
//   session that was away has no credit, and between equals the first to arrive runs to its end.
//
// Pure: times come in, nothing here reads a clock, and one that goes backwards changes only the
// order.
#pragma once

#include <cstdint>
#include <limits>

namespace optima::scheduler {

inline constexpr int64_t kLevelNs = 10'000'000'000;
inline constexpr int32_t kPriorityMax = 100;  // and -kPriorityMax: a level is gained in 10 s
inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

struct Standing {
  int32_t priority = 0;
  int64_t submitted_ns = 0;  // of one steady clock, as the deadline
  int64_t deadline_ns = kNoDeadline;
  int64_t tag = 0;       // FairShare::begin()
  uint64_t arrival = 0;  // unique, ascending
};

int64_t level(const Standing& of);

// The order in which requests are served. Strict and total.
bool comes_before(const Standing& a, const Standing& b);

// Who may take memory from whom: the higher level, then the earlier arrival. Deadlines and shares
// have no part in it: the first in this order always gets on.
bool outranks(const Standing& a, const Standing& b);

// The virtual time of start-time fair queueing, in tokens.
class FairShare {
 public:
  // The tag of a new request of a session that was served up to `session_tag`.
  int64_t begin(int64_t session_tag) const { return session_tag > now_ ? session_tag : now_; }
  // A request with this tag is served.
  void serve(int64_t tag) { now_ = tag > now_ ? tag : now_; }

 private:
  int64_t now_ = 0;
};

}  // namespace optima::scheduler
