// See order.h.
#include "scheduler/order.h"

#include <tuple>

namespace optima::scheduler {
namespace {

int64_t floor_divide(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

}  // namespace

int64_t level(const Standing& of) {
  return of.priority - floor_divide(of.submitted_ns, kLevelNs);
}

bool comes_before(const Standing& a, const Standing& b) {
  return std::tuple(-level(a), a.deadline_ns, a.tag, a.arrival) <
         std::tuple(-level(b), b.deadline_ns, b.tag, b.arrival);
}

bool outranks(const Standing& a, const Standing& b) {
  return std::tuple(-level(a), a.arrival) < std::tuple(-level(b), b.arrival);
}

}  // namespace optima::scheduler
