// How many requests may wait: a refusal that the caller can act on, instead of a wait that grows.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace optima::scheduler {

struct Queue {
  int64_t waiting = 0;  // requests that have not begun
  int64_t limit = 0;    // of them; 0 = none
};

// Whether `count` more may wait: all of them or none. busy with the number that would wait, the
// room that there is, and the limit.
Status check_queue(const Queue& queue, int64_t count);

}  // namespace optima::scheduler
