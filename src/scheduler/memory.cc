// See memory.h.
#include "scheduler/memory.h"

namespace optima::scheduler {
namespace {

bool may_take(const Taker& taker, const Holder& holder) {
  if (holder.bytes <= 0) return false;
  switch (holder.holding) {
    case Holding::idle:
      return true;
    case Holding::waiting:
      return taker.holding == Holding::running || comes_before(taker.standing, holder.standing);
    case Holding::running:
      if (taker.holding == Holding::waiting) return level(taker.standing) > level(holder.standing);
      return outranks(taker.standing, holder.standing);
  }
  return false;
}

// Whether `a` gives before `b` does.
bool gives_before(const Holder& a, const Holder& b) {
  if (a.holding != b.holding) return a.holding < b.holding;
  switch (a.holding) {
    case Holding::idle:
      return a.used_last < b.used_last;
    case Holding::waiting:
      return comes_before(b.standing, a.standing);
    case Holding::running:
      return outranks(b.standing, a.standing);
  }
  return false;
}

}  // namespace

bool may_begin(int64_t bytes, const Memory& memory) {
  return bytes <= memory.bytes_free - memory.bytes_promised;
}

std::optional<size_t> choose_victim(std::span<const Holder> holders, const Taker& taker) {
  std::optional<size_t> victim;
  for (size_t i = 0; i < holders.size(); ++i)
    if (may_take(taker, holders[i]) && (!victim || gives_before(holders[i], holders[*victim])))
      victim = i;
  return victim;
}

}  // namespace optima::scheduler
