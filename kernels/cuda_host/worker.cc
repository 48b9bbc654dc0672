// Running the threads of a block. See worker.h.
//
// ThreadSanitizer does not look into this file. It learns from race_release() and race_acquire()
// what orders the threads of a kernel: the block's beginning and end, its barrier, and syncwarp.
// Not the exchange of values in a warp: by CUDA's rules a shuffle orders no memory.
#include "kernels/cuda_host/worker.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

namespace optima::cuda_host {

constinit thread_local const View* current = nullptr;

namespace {

// Rounds in which threads did nothing but pause, before they are taken to wait for ever.
constexpr int kPausedRoundsMax = 100000;

// A loop of its own, so that it is no call of memset, which ThreadSanitizer would see.
void fill_with_nan(unsigned char* memory, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    memory[i] = 0xff;
    asm volatile("" ::: "memory");
  }
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

Thread::Thread(Worker& of, int index) : worker(of), fiber(run, this) {
  view.thread = index;
  view.owner = this;
}

void Thread::run(void* thread) {
  auto* self = static_cast<Thread*>(thread);
  self->worker.run_kernel(*self);
}

Worker::Worker(const MachineOptions& options, int index)
    : options_(options), random_(options.seed * 7919u + static_cast<unsigned>(index)) {}

Worker::~Worker() {
  const RaceSilence silence;  // threads of failed launches ordered nothing when they ended
  threads_.clear();
  meetings_.clear();
  arrays_.clear();
  dynamic_.reset();
}

bool Worker::prepare(const Shape& shape, const Body& body) {
  shape_ = shape;
  body_ = body;
  const RaceSilence silence;
  arrays_.clear();
  static_bytes_ = 0;
  // Of exactly this size, so that AddressSanitizer sees one byte too many.
  dynamic_ = std::make_unique<unsigned char[]>(shape.shared_bytes);
  while (threads_.size() < thread_count()) {
    threads_.push_back(std::make_unique<Thread>(*this, static_cast<int>(threads_.size())));
    if (!threads_.back()->fiber.valid()) {
      threads_.pop_back();
      return false;
    }
  }
  order_.resize(thread_count());
  for (size_t i = 0; i < order_.size(); ++i) {
    order_[i] = options_.schedule == Schedule::reverse ? order_.size() - 1 - i : i;
  }
  meetings_.clear();
  meetings_.resize((thread_count() + ce::kWarp - 1) / ce::kWarp);
  return true;
}

void Worker::start_block(ce::Dim block) {
  block_ = block;
  done_ = 0;
  barrier_arrived_ = 0;
  for (const Array& array : arrays_) fill_with_nan(array.memory.get(), array.bytes);
  fill_with_nan(dynamic_.get(), shape_.shared_bytes);
  for (size_t i = 0; i < thread_count(); ++i) {
    Thread& thread = thread_at(i);
    thread.view.threads = shape_.threads;
    thread.view.block = block;
    thread.view.grid = shape_.grid;
    thread.state = Thread::State::ready;
    thread.copy_count = 0;
    thread.commits = 0;
  }
}

bool Worker::run_block(ce::Dim block) {
  start_block(block);
  race_release(&begin_tag_);
  int paused_rounds = 0;
  while (done_ < shape_.threads && !failed_) {
    switch (run_round()) {
      case Round::advanced:
        paused_rounds = 0;
        break;
      case Round::paused:
        if (++paused_rounds > kPausedRoundsMax) report_spinning();
        break;
      case Round::stuck:
        report_deadlock();
        break;
    }
  }
  current = nullptr;
  race_acquire(&end_tag_);
  if (!failed_) return true;
  abandon();
  failed_ = false;
  return false;
}

void Worker::order_threads() {
  if (options_.schedule == Schedule::seeded) std::shuffle(order_.begin(), order_.end(), random_);
}

Worker::Round Worker::run_round() {
  order_threads();
  round_advanced_ = false;
  bool resumed = false;
  for (const size_t index : order_) {
    Thread& thread = thread_at(index);
    if (thread.state != Thread::State::ready) continue;
    resumed = true;
    current = &thread.view;
    thread.fiber.resume();
    if (failed_) return Round::advanced;
  }
  if (round_advanced_) return Round::advanced;
  return resumed ? Round::paused : Round::stuck;
}

void Worker::run_kernel(Thread& self) {
  race_acquire(&begin_tag_);
  body_.call(body_.kernel);
  race_release(&end_tag_);
  self.state = Thread::State::done;
  ++done_;
  round_advanced_ = true;
}

void Worker::wait(Thread& self, Thread::State state) {
  self.state = state;
  round_advanced_ = true;
  self.fiber.suspend();
}

void Worker::pause(Thread& self) {
  self.fiber.suspend();
}

void Worker::barrier(Thread& self, Site site) {
  self.site = site;
  if (barrier_arrived_ == 0) {
    barrier_site_ = site;
    barrier_first_ = self.view.thread;
  } else if (barrier_site_.line != site.line || strcmp(barrier_site_.file, site.file) != 0) {
    char text[256];
    snprintf(text, sizeof text, "divergent barrier: thread %d came to the one at %s:%d",
             barrier_first_, base_name(barrier_site_.file), barrier_site_.line);
    fail(self, site, text);
  }
  // Two tags in turns: a thread that is late reads the one of its round, to which those that are
  // ahead add nothing.
  void* tag = &barrier_tags_[barrier_round_ & 1];
  race_release(tag);
  if (++barrier_arrived_ == shape_.threads) {
    barrier_arrived_ = 0;
    ++barrier_round_;
    round_advanced_ = true;
    for (size_t i = 0; i < thread_count(); ++i) {
      Thread& other = thread_at(i);
      if (other.state == Thread::State::at_barrier) other.state = Thread::State::ready;
    }
  } else {
    wait(self, Thread::State::at_barrier);
  }
  race_acquire(tag);
}

Meeting& Worker::meeting(int warp, unsigned mask) {
  auto& known = meetings_[static_cast<size_t>(warp)];
  for (const auto& meeting : known) {
    if (meeting->mask == mask) return *meeting;
  }
  const RaceSilence silence;
  known.push_back(std::make_unique<Meeting>());
  known.back()->mask = mask;
  return *known.back();
}

const Deposit* Worker::meet(Thread& self, const WarpCall& call, const Deposit& mine) {
  const int warp = self.view.thread / ce::kWarp;
  const int lane = self.view.thread % ce::kWarp;
  const int lanes = std::min(shape_.threads - warp * ce::kWarp, ce::kWarp);
  const unsigned existing = lanes == ce::kWarp ? ce::kFullMask : (1u << lanes) - 1;
  if ((call.mask >> lane & 1u) == 0) fail(self, call.site, "the mask lacks the thread itself");
  if ((call.mask & ~existing) != 0) fail(self, call.site, "the mask has lanes that do not exist");
  self.site = call.site;
  self.word = call.word;
  self.mask = call.mask;
  Meeting& meeting = this->meeting(warp, call.mask);
  if (meeting.arrived == 0) {
    meeting.word = call.word;
    meeting.site = call.site;
  } else if (meeting.word != call.word) {
    char text[256];
    snprintf(text, sizeof text, "%s meets %s at %s:%d", warp_word_name(call.word),
             warp_word_name(meeting.word), base_name(meeting.site.file), meeting.site.line);
    fail(self, call.site, text);
  }
  const unsigned side = meeting.round & 1;
  for (int i = 0; i < 8; ++i) meeting.deposits[side][lane].word[i] = mine.word[i];
  const bool orders = call.word == WarpWord::syncwarp;
  if (orders) race_release(&meeting.tags[side]);
  meeting.arrived |= 1u << lane;
  if (meeting.arrived == call.mask) {
    meeting.arrived = 0;
    ++meeting.round;
    round_advanced_ = true;
    for (int other = 0; other < lanes; ++other) {
      Thread& thread = thread_at(static_cast<size_t>(warp * ce::kWarp + other));
      if (thread.state == Thread::State::at_meeting && thread.mask == call.mask) {
        thread.state = Thread::State::ready;
      }
    }
  } else {
    wait(self, Thread::State::at_meeting);
  }
  if (orders) race_acquire(&meeting.tags[side]);
  return meeting.deposits[side];
}

void* Worker::shared(Thread& self, const void* key, size_t bytes) {
  for (const Array& array : arrays_) {
    if (array.key == key) return array.memory.get();
  }
  static_bytes_ += bytes;
  if (static_bytes_ > options_.limits.static_shared_bytes ||
      static_bytes_ + shape_.shared_bytes > options_.limits.shared_bytes) {
    char text[128];
    snprintf(text, sizeof text, "%zu bytes of static shared memory and %zu of dynamic: too much",
             static_bytes_, shape_.shared_bytes);
    fail(self, {}, text);
  }
  const RaceSilence silence;
  arrays_.push_back({key, bytes, std::make_unique<unsigned char[]>(bytes)});
  fill_with_nan(arrays_.back().memory.get(), bytes);
  return arrays_.back().memory.get();
}

bool Worker::is_shared(const void* from, size_t bytes) const {
  const auto inside = [from, bytes](const unsigned char* memory, size_t size) {
    const auto* begin = static_cast<const unsigned char*>(from);
    return begin >= memory && begin + bytes <= memory + size;
  };
  if (inside(dynamic_.get(), shape_.shared_bytes)) return true;
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [&](const Array& array) { return inside(array.memory.get(), array.bytes); });
}

void Worker::fail(Thread& self, Site site, const char* what) {
  {
    const RaceSilence silence;
    snprintf(failure_, sizeof failure_, "%s, block (%d, %d, %d), thread %d, %s:%d: %s", shape_.name,
             block_.x, block_.y, block_.z, self.view.thread, base_name(site.file), site.line, what);
  }
  failed_ = true;
  for (;;) self.fiber.suspend();
}

void Worker::report_deadlock() {
  const RaceSilence silence;
  failed_ = true;
  size_t first = 0;
  while (thread_at(first).state == Thread::State::done) ++first;
  const Thread& waiting = thread_at(first);
  const bool at_barrier = waiting.state == Thread::State::at_barrier;
  const size_t begin = at_barrier ? 0 : first / ce::kWarp * ce::kWarp;
  size_t missing = begin;
  // Who was to come: a thread of the block, or of the mask, that is not where this one is.
  for (; missing < thread_count(); ++missing) {
    const Thread& other = thread_at(missing);
    const bool wanted = at_barrier || (waiting.mask >> (missing - begin) & 1u) != 0;
    const bool here = other.state == waiting.state && (at_barrier || other.mask == waiting.mask);
    if (wanted && !here) break;
  }
  const Thread& other = thread_at(missing);
  char whereabouts[160] = "has ended";
  if (other.state != Thread::State::done) {
    snprintf(whereabouts, sizeof whereabouts, "waits at %s:%d", base_name(other.site.file),
             other.site.line);
  }
  snprintf(
      failure_, sizeof failure_,
      "%s, block (%d, %d, %d): deadlock: thread %zu waits at %s of %s:%d for thread %zu, which "
      "%s",
      shape_.name, block_.x, block_.y, block_.z, first,
      at_barrier ? "the barrier" : warp_word_name(waiting.word), base_name(waiting.site.file),
      waiting.site.line, missing, whereabouts);
}

void Worker::report_spinning() {
  const RaceSilence silence;
  failed_ = true;
  snprintf(failure_, sizeof failure_,
           "%s, block (%d, %d, %d): threads wait in a loop for a value that nobody writes",
           shape_.name, block_.x, block_.y, block_.z);
}

void Worker::abandon() {
  const RaceSilence silence;
  for (size_t i = 0; i < thread_count(); ++i) {
    if (thread_at(i).state != Thread::State::done) thread_at(i).fiber.restart();
    thread_at(i).state = Thread::State::done;
  }
}

}  // namespace optima::cuda_host
