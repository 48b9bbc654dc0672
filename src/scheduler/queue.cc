// See queue.h.
#include "scheduler/queue.h"

#include <algorithm>

#include "base/text.h"

namespace optima::scheduler {

Status check_queue(const Queue& queue, int64_t count) {
  const int64_t room = std::max<int64_t>(0, queue.limit - queue.waiting);
  if (queue.limit == 0 || count <= room) return {};
  return Status(Code::busy,
                text("the queue is full: ", queue.waiting, " requests wait, the limit is ",
                     queue.limit, ", ", count, " more wanted"),
                {queue.waiting + count, room, queue.limit});
}

}  // namespace optima::scheduler
