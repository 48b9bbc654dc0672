// The sets of stacks of a network that runs on text. A set is a list of (top frame, set of what
// lies below), each frame at most once, stored once and known by a number: stacks that end alike
// share their ends, equal sets are equal numbers, and what follows a byte is computed once for each
// set.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sampling/grammar/distance.h"
#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

using SetId = uint32_t;    // 0 = no stack at all
using FrameId = uint32_t;  // a state; bottom; hole; or a frame with data

struct Frame {
  enum class Kind : uint8_t {
    repeat,  // the body of repeats[index] runs; it may run `high` times more, must `low` times
    first,   // objects[index] has been opened
    choose,  // a comma has been read, a member must follow
    after,   // a member runs
  };
  Kind kind;
  uint32_t index;
  int64_t low, high;  // of repeat; of objects: members so far, -
  uint32_t seen;      // of objects: number of the set of members seen
  bool operator==(const Frame&) const = default;
};

struct Entry {
  FrameId frame;
  SetId rest;
  bool operator==(const Entry&) const = default;
};

class Stacks {
 public:
  Stacks(const Program& program, const Limits& limits);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // The set before any byte. Functions that may reach a limit return the empty set and leave the
  // error in status().
  SetId start();
  SetId step(SetId set, uint8_t byte) {
    const Row* row = rows_[set].get();
    if (row != nullptr) return (*row)[byte] != kUnknown ? (*row)[byte] : compute_step(set, byte);
    const Few& few = few_[set];
    for (size_t i = 0; i < few.count; ++i)
      if (few.bytes[i] == byte) return few.targets[i];
    return compute_step(set, byte);
  }
  // What lies below, after a return.
  SetId resume(SetId rest);

  std::span<const Entry> entries(SetId set) const {
    return std::span(entries_).subspan(sets_[set].first, sets_[set].count);
  }
  bool is_state(FrameId frame) const { return frame < bottom(); }
  FrameId bottom() const { return static_cast<FrameId>(program_.states.size()); }
  FrameId hole() const { return bottom() + 1; }
  const Frame& frame(FrameId id) const { return frames_[id - hole() - 1]; }
  FrameId intern(const Frame& frame);
  SetId intern(std::vector<Entry> entries);  // in any order
  SetId single(FrameId frame, SetId rest) { return intern(std::vector<Entry>{{frame, rest}}); }
  // Of a set that a step, start() or resume() gave: bottom and hole are the last of its entries.
  bool has_hole(SetId set) const {
    const Set& info = sets_[set];
    return info.count > 0 && entries_[info.first + info.count - 1].frame == hole();
  }
  bool has_bottom(SetId set) const;
  int64_t depth(SetId set) const { return sets_[set].depth; }

  // The same set in another Stacks of the same program.
  SetId import(const Stacks& other, SetId set);

  // The fewest bytes after which the text may end.
  int64_t distance(SetId set, const Distances& distances) const;

  const Status& status() const { return status_; }
  void clear_status() { status_ = {}; }
  int64_t memory_bytes() const { return memory_; }
  // How many stacks may be looked at from now on, all bytes together.
  void set_budget(int64_t budget) { budget_ = budget; }

 private:
  struct Set {
    uint32_t first, count;
    int32_t depth;
  };
  using Row = std::array<SetId, 256>;
  // Most sets are left by a byte or two; those that a walk through the tokens meets get a row.
  struct Few {
    std::array<SetId, 3> targets;
    std::array<uint8_t, 3> bytes;
    uint8_t count;
  };
  static constexpr SetId kUnknown = ~SetId{0};

  SetId compute_step(SetId set, uint8_t byte);
  void remember(SetId set, uint8_t byte, SetId next);
  SetId close_work();  // runs work_ to the end
  void check_cost(int64_t done);
  void expand_state(FrameId state, SetId rest);
  void expand_frame(const Frame& frame, SetId rest);
  void expand_object(const Frame& frame, SetId rest);
  void add_work(FrameId frame, SetId rest);
  SetId push(FrameId frame, SetId rest);
  SetId push_return(StateId next, SetId rest) {
    return program_.returns_only(next) ? rest : push(next, rest);
  }
  SetId store(std::vector<Entry> sorted);
  SetId merge(SetId a, SetId b);
  bool merge_ready(SetId a, SetId b, std::vector<Entry>& merged,
                   std::vector<std::pair<SetId, SetId>>& missing);
  uint32_t seen_with(uint32_t seen, size_t member);
  bool has_seen(uint32_t seen, size_t member) const;
  uint32_t intern_seen(std::vector<uint64_t> bits);
  int64_t distance_of_frame(FrameId id, const Distances& distances) const;
  void fail(Status status);

  const Program& program_;
  const Limits limits_;
  std::vector<Set> sets_;
  std::vector<Entry> entries_;
  std::vector<Frame> frames_;
  std::vector<std::vector<uint64_t>> seen_;
  std::unordered_multimap<uint64_t, uint32_t> set_index_, frame_index_, seen_index_;
  std::unordered_map<uint64_t, SetId> merged_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<Few> few_;
  // Of one closure.
  std::vector<Entry> work_, out_;
  std::unordered_set<uint64_t> visited_;
  Status status_;
  int64_t memory_ = 0, budget_ = kUnlimited;
};

}  // namespace optima::sampling::grammar
