// The lock and the bells of one engine. Requests keep it alive on their own, so that a handle may
// outlive its engine.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/metrics.h"
#include "kv/audit.h"
#include "scheduler/order.h"

namespace optima::engine {

class SessionImpl;

struct Hub {
  std::mutex mutex;                    // guards requests, sessions and event queues of the engine
  std::condition_variable work;        // the driving thread waits: submitted, acknowledged, closed
  std::condition_variable events;      // hosts wait: an event, the end of a request or of a turn
  scheduler::FairShare share;          // under the mutex, as all below
  uint64_t arrivals = 0;               // requests so far
  uint64_t uses = 0;                   // of sessions so far
  std::vector<SessionImpl*> sessions;  // all there are
  Metrics metrics;                     // the gauges are filled in when asked for
  kv::TableList tables;                // of all sessions; those in it change under the mutex
};

}  // namespace optima::engine
