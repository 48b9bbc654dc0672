// Who may hold KV memory, and who gives it up for whom. Pure, as order.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scheduler/order.h"

namespace optima::scheduler {

struct Memory {
  int64_t bytes_free = 0;
  int64_t bytes_promised = 0;  // of these, what running requests are going to take
};

// Whether a request may begin that will take `bytes` more than it holds.
bool may_begin(int64_t bytes, const Memory& memory);

enum class Holding : uint8_t {
  idle,     // a session without a request
  waiting,  // a request that has not begun, or was preempted; its session may hold something
  running,
};

struct Holder {
  Holding holding = Holding::idle;
  int64_t bytes = 0;
  uint64_t used_last = 0;  // idle: ascending with time
  Standing standing;       // waiting, running
};

// For whom memory is wanted.
struct Taker {
  Standing standing;
  Holding holding = Holding::running;  // or waiting
};

// Which of the holders gives up what it holds: idle ones first, from the one that was used longest
// ago; then waiting ones, from the last in order; then the running one that all others outrank.
// None who comes before the taker gives, and for a request that has yet to begin only running ones
// of lower levels do: between equals who runs is not stopped for who waits.
std::optional<size_t> choose_victim(std::span<const Holder> holders, const Taker& taker);

}  // namespace optima::scheduler
