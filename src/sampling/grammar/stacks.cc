// A step takes every live top state over the byte and closes the result: skips are followed, calls
// pushed, returns popped, until only states that wait for a byte are left (or the bottom: the text
// may end here). A call whose return would do nothing but return is not pushed, so that a list that
// names itself at its end keeps its stack flat. Merging two sets that share top frames goes down
// the stacks pair by pair with a list of work instead of recursion: stacks may be deep.
#include "sampling/grammar/stacks.h"

#include <algorithm>
#include <bit>

#include "base/text.h"

namespace optima::sampling::grammar {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9u;
}

uint64_t pair_key(uint32_t a, uint32_t b) {
  return uint64_t{a} << 32 | b;
}

// What a node of the standard hash tables costs, about.
constexpr int64_t kIndexBytes = 48;

}  // namespace

Stacks::Stacks(const Program& program, const Limits& limits) : program_(program), limits_(limits) {
  sets_.push_back({0, 0, 0});
  rows_.emplace_back();
  few_.emplace_back();
  intern_seen({});  // number 0
}

void Stacks::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

FrameId Stacks::intern(const Frame& frame) {
  uint64_t hash = mix(static_cast<uint64_t>(frame.kind), frame.index);
  hash = mix(mix(hash, static_cast<uint64_t>(frame.low)), static_cast<uint64_t>(frame.high));
  hash = mix(hash, frame.seen);
  const auto [first, last] = frame_index_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (frames_[it->second] == frame) return hole() + 1 + it->second;
  const auto index = static_cast<uint32_t>(frames_.size());
  frames_.push_back(frame);
  frame_index_.emplace(hash, index);
  memory_ += static_cast<int64_t>(sizeof(Frame)) + kIndexBytes;
  return hole() + 1 + index;
}

uint32_t Stacks::intern_seen(std::vector<uint64_t> bits) {
  uint64_t hash = bits.size();
  for (const uint64_t word : bits) hash = mix(hash, word);
  const auto [first, last] = seen_index_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (seen_[it->second] == bits) return it->second;
  const auto index = static_cast<uint32_t>(seen_.size());
  memory_ += static_cast<int64_t>(bits.size() * sizeof(uint64_t)) + kIndexBytes;
  seen_.push_back(std::move(bits));
  seen_index_.emplace(hash, index);
  return index;
}

uint32_t Stacks::seen_with(uint32_t seen, size_t member) {
  std::vector<uint64_t> bits = seen_[seen];
  if (bits.size() <= member / 64) bits.resize(member / 64 + 1);
  bits[member / 64] |= uint64_t{1} << (member % 64);
  return intern_seen(std::move(bits));
}

bool Stacks::has_seen(uint32_t seen, size_t member) const {
  const std::vector<uint64_t>& bits = seen_[seen];
  return member / 64 < bits.size() && (bits[member / 64] >> (member % 64) & 1) != 0;
}

SetId Stacks::store(std::vector<Entry> sorted) {
  if (sorted.empty()) return 0;
  uint64_t hash = sorted.size();
  for (const Entry& entry : sorted) hash = mix(hash, pair_key(entry.frame, entry.rest));
  const auto [first, last] = set_index_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (std::ranges::equal(entries(it->second), sorted)) return it->second;
  int32_t depth = 0;
  for (const Entry& entry : sorted) depth = std::max(depth, sets_[entry.rest].depth);
  const auto id = static_cast<SetId>(sets_.size());
  sets_.push_back(
      {static_cast<uint32_t>(entries_.size()), static_cast<uint32_t>(sorted.size()), depth + 1});
  entries_.insert(entries_.end(), sorted.begin(), sorted.end());
  rows_.emplace_back();
  few_.emplace_back();
  set_index_.emplace(hash, id);
  memory_ += static_cast<int64_t>(sizeof(Set) + sizeof(Few) + sizeof(void*) +
                                  sorted.size() * sizeof(Entry)) +
             kIndexBytes;
  return id;
}

SetId Stacks::intern(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.frame != b.frame ? a.frame < b.frame : a.rest < b.rest;
  });
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (kept > 0 && entries[kept - 1].frame == entries[i].frame)
      entries[kept - 1].rest = merge(entries[kept - 1].rest, entries[i].rest);
    else
      entries[kept++] = entries[i];
  }
  entries.resize(kept);
  return store(std::move(entries));
}

// The merged list of two sets, when all merges of what lies below are known; else those missing.
bool Stacks::merge_ready(SetId a, SetId b, std::vector<Entry>& merged,
                         std::vector<std::pair<SetId, SetId>>& missing) {
  merged.clear();
  const std::span<const Entry> left = entries(a), right = entries(b);
  size_t i = 0, j = 0;
  bool ready = true;
  while (i < left.size() || j < right.size()) {
    if (j == right.size() || (i < left.size() && left[i].frame < right[j].frame)) {
      merged.push_back(left[i++]);
    } else if (i == left.size() || right[j].frame < left[i].frame) {
      merged.push_back(right[j++]);
    } else {
      const SetId low = std::min(left[i].rest, right[j].rest);
      const SetId high = std::max(left[i].rest, right[j].rest);
      SetId rest = high;
      if (low != high && low != 0) {
        const auto known = merged_.find(pair_key(low, high));
        if (known == merged_.end()) {
          missing.emplace_back(low, high);
          ready = false;
        } else {
          rest = known->second;
        }
      }
      merged.push_back({left[i].frame, rest});
      ++i, ++j;
    }
  }
  return ready;
}

SetId Stacks::merge(SetId a, SetId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  std::vector<std::pair<SetId, SetId>> work{{std::min(a, b), std::max(a, b)}};
  std::vector<Entry> merged;
  SetId result = 0;
  while (!work.empty()) {
    const auto [low, high] = work.back();
    const auto known = merged_.find(pair_key(low, high));
    if (known != merged_.end()) {
      result = known->second;
      work.pop_back();
      continue;
    }
    if (!merge_ready(low, high, merged, work)) continue;
    result = store(merged);
    merged_.emplace(pair_key(low, high), result);
    memory_ += kIndexBytes;
    work.pop_back();
  }
  return result;
}

SetId Stacks::push(FrameId frame, SetId rest) {
  if (sets_[rest].depth >= limits_.depth) {
    fail({Code::unsupported,
          text("the text nests more than ", limits_.depth, " deep under its grammar"),
          {sets_[rest].depth + 1, -1, limits_.depth}});
    return rest;
  }
  return store({{frame, rest}});
}

void Stacks::add_work(FrameId frame, SetId rest) {
  if (visited_.insert(pair_key(frame, rest)).second) work_.push_back({frame, rest});
}

void Stacks::expand_state(FrameId id, SetId rest) {
  const State& state = program_.states[id];
  bool waits = false;
  for (const Edge& edge : state.edges) {
    switch (edge.kind) {
      case EdgeKind::bytes:
        waits = true;
        break;
      case EdgeKind::skip:
        add_work(edge.target, rest);
        break;
      case EdgeKind::call:
        add_work(edge.index, push_return(edge.target, rest));
        break;
      case EdgeKind::repeat: {
        const Repeat& repeat = program_.repeats[edge.index];
        if (repeat.min == 0) add_work(edge.target, rest);
        if (repeat.max == 0) break;
        const int64_t high = repeat.max == kUnlimited ? kUnlimited : repeat.max - 1;
        const Frame frame{Frame::Kind::repeat, edge.index, std::max<int64_t>(repeat.min - 1, 0),
                          high, 0};
        add_work(repeat.body, push(intern(frame), rest));
        break;
      }
      case EdgeKind::object: {
        const Frame frame{Frame::Kind::first, edge.index, 0, 0, 0};
        add_work(program_.objects[edge.index].open,
                 push(intern(frame), push_return(edge.target, rest)));
        break;
      }
    }
  }
  if (waits) out_.push_back({id, rest});
  if (state.final)
    for (size_t i = 0; i < sets_[rest].count; ++i) {
      const Entry below = entries_[sets_[rest].first + i];
      add_work(below.frame, below.rest);
    }
}

void Stacks::expand_object(const Frame& frame, SetId rest) {
  const Object& object = program_.objects[frame.index];
  const int64_t count = frame.low;
  int64_t required_left = object.required_count;
  for (size_t i = 0; i < object.members.size(); ++i)
    required_left -= object.members[i].required && has_seen(frame.seen, i);
  const int64_t places_left = object.max == kUnlimited ? kUnlimited : object.max - count;
  // Of the members still possible, those that leave room for all that are required.
  const auto possible = [&](size_t i) {
    const Member& member = object.members[i];
    if (!member.many && has_seen(frame.seen, i)) return false;
    return places_left > (member.required ? 0 : required_left);
  };
  const bool may_close = required_left == 0 && count >= object.min;
  if (frame.kind == Frame::Kind::after) {
    if (may_close) add_work(object.close, rest);
    bool more = false;
    for (size_t i = 0; i < object.members.size() && !more; ++i) more = possible(i);
    if (!more) return;
    Frame next = frame;
    next.kind = Frame::Kind::choose;
    add_work(object.comma, push(intern(next), rest));
    return;
  }
  if (frame.kind == Frame::Kind::first && may_close) add_work(object.close_empty, rest);
  // A count beyond what min and max look at is the same as at their border.
  const bool counts = object.max != kUnlimited || count < object.min;
  for (size_t i = 0; i < object.members.size(); ++i) {
    if (!possible(i)) continue;
    const uint32_t seen = object.members[i].many ? frame.seen : seen_with(frame.seen, i);
    const Frame next{Frame::Kind::after, frame.index, counts ? count + 1 : count, 0, seen};
    add_work(object.members[i].start, push(intern(next), rest));
  }
}

void Stacks::expand_frame(const Frame& frame, SetId rest) {
  if (frame.kind != Frame::Kind::repeat) return expand_object(frame, rest);
  const Repeat& repeat = program_.repeats[frame.index];
  if (frame.low == 0) add_work(repeat.next, rest);
  if (frame.high == 0) return;
  Frame next = frame;
  if (next.low != kUnlimited) next.low = std::max<int64_t>(next.low - 1, 0);
  if (next.high != kUnlimited) --next.high;
  add_work(repeat.body, push(intern(next), rest));
}

void Stacks::check_cost(int64_t done) {
  if (done > limits_.work)
    fail({Code::unsupported,
          text("the grammar is ambiguous: more than ", limits_.work, " stacks for one byte"),
          {done, -1, limits_.work}});
  if (budget_ != kUnlimited && --budget_ < 0)
    fail({Code::unsupported,
          text("a mask of the grammar costs more than ", limits_.mask_work, " stacks"),
          {limits_.mask_work + 1, -1, limits_.mask_work}});
  if (memory_ > limits_.memory_bytes)
    fail({Code::unsupported,
          text("the stacks of the grammar need more than ", limits_.memory_bytes, " bytes"),
          {memory_, -1, limits_.memory_bytes}});
}

SetId Stacks::close_work() {
  int64_t done = 0;
  while (!work_.empty() && status_.ok()) {
    const Entry entry = work_.back();
    work_.pop_back();
    check_cost(++done);
    if (is_state(entry.frame)) {
      expand_state(entry.frame, entry.rest);
    } else if (entry.frame == bottom() || entry.frame == hole()) {
      out_.push_back({entry.frame, 0});
    } else {
      const Frame frame_copy = frame(entry.frame);  // frames_ grows below
      expand_frame(frame_copy, entry.rest);
    }
  }
  work_.clear();
  visited_.clear();
  std::vector<Entry> result = std::move(out_);
  out_.clear();
  if (!status_.ok()) return 0;
  return intern(std::move(result));
}

SetId Stacks::start() {
  add_work(program_.start, single(bottom(), 0));
  return close_work();
}

SetId Stacks::resume(SetId rest) {
  for (const Entry& entry : std::vector<Entry>(entries(rest).begin(), entries(rest).end()))
    add_work(entry.frame, entry.rest);
  return close_work();
}

SetId Stacks::compute_step(SetId set, uint8_t byte) {
  for (const Entry& entry : entries(set)) {
    if (!is_state(entry.frame)) continue;
    for (const Edge& edge : program_.states[entry.frame].edges)
      if (edge.kind == EdgeKind::bytes && edge.low <= byte && byte <= edge.high)
        add_work(edge.target, entry.rest);
  }
  const SetId next = close_work();
  if (!status_.ok()) return 0;
  remember(set, byte, next);
  return next;
}

void Stacks::remember(SetId set, uint8_t byte, SetId next) {
  std::unique_ptr<Row>& row = rows_[set];
  Few& few = few_[set];
  if (row == nullptr && few.count < few.bytes.size()) {
    few.bytes[few.count] = byte;
    few.targets[few.count++] = next;
    return;
  }
  if (row == nullptr) {
    row = std::make_unique<Row>();
    row->fill(kUnknown);
    for (size_t i = 0; i < few.count; ++i) (*row)[few.bytes[i]] = few.targets[i];
    memory_ += static_cast<int64_t>(sizeof(Row));
  }
  (*row)[byte] = next;
}

bool Stacks::has_bottom(SetId set) const {
  const std::span<const Entry> list = entries(set);
  return std::any_of(list.begin(), list.end(),
                     [&](const Entry& entry) { return entry.frame == bottom(); });
}

SetId Stacks::import(const Stacks& other, SetId set) {
  std::unordered_map<SetId, SetId> known{{0, 0}};
  std::vector<SetId> work{set};
  while (!work.empty()) {
    const SetId source = work.back();
    bool ready = true;
    std::vector<Entry> moved;
    for (const Entry& entry : other.entries(source)) {
      const auto rest = known.find(entry.rest);
      if (rest == known.end()) {
        work.push_back(entry.rest);
        ready = false;
        continue;
      }
      FrameId id = entry.frame;
      if (id > hole()) {
        Frame copy = other.frame(id);
        copy.seen = intern_seen(other.seen_[copy.seen]);
        id = intern(copy);
      }
      moved.push_back({id, rest->second});
    }
    if (!ready) continue;
    work.pop_back();
    known[source] = intern(std::move(moved));
  }
  return known[set];
}

}  // namespace optima::sampling::grammar
