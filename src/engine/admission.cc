// Who may hold KV memory: requests begin when what they need is free, and give it up for those who
// outrank them. The rules are in scheduler/memory.h; all of it under the hub's lock.
#include <algorithm>

#include "base/text.h"
#include "engine/engine_impl.h"

namespace optima::engine {

// What running requests have not taken yet is theirs: one page more than they know of, so that the
// next step of each finds room.
scheduler::Memory EngineImpl::memory_left() const {
  scheduler::Memory left{pages_->counts().bytes_free, 0};
  for (const auto& request : active_)
    if (request->running()) left.bytes_promised += request->bytes_missing();
  return left;
}

// Lets requests begin, or go on after they were preempted, first ones first. Who finds no room
// waits, and those after it as well: a stream of small ones must not starve a large one.
void EngineImpl::admit(TimePoint time, Sessions& released) {
  order_.clear();
  for (const auto& request : active_)
    if (!request->running() && !request->waits_for_host() && !request->has_chosen())
      order_.push_back(request.get());
  if (order_.empty()) return;
  std::sort(order_.begin(), order_.end(), [](const RequestImpl* a, const RequestImpl* b) {
    return scheduler::comes_before(a->standing(), b->standing());
  });
  scheduler::Memory left = memory_left();
  for (RequestImpl* request : order_) {
    kv::PageTable& table = request->session()->table_;
    const int64_t length = table.length();
    request->adopt_prefix();
    if (awaits_prefix(*request)) continue;
    const bool reads_back = reads_back_spill(*request);
    left.bytes_free = pages_->counts().bytes_free;
    while (!scheduler::may_begin(request->bytes_missing(), left)) {
      if (make_room(*request) != Room::made) break;
      left = memory_left();
    }
    const bool lone = left.bytes_promised == 0 && !others_hold_pages(*request);
    if (scheduler::may_begin(request->bytes_missing(), left) ||
        (lone && request->fits_barely(left.bytes_free))) {
      left.bytes_promised += request->bytes_missing();
      begin(*request, reads_back ? Source::spill : Source::tokens);
      continue;
    }
    if (lone) {
      retire(*request, FinishReason::error, request->memory_error(), time, released);
    } else {
      table.truncate(
          table.reusable(std::min(length, table.length())));  // waiting holds nothing new
    }
    return;
  }
}

// What was written out is read back unless as many pages are known by their tokens still.
bool EngineImpl::reads_back_spill(RequestImpl& request) {
  const RequestImpl::Spill spill = request.spill();
  kv::PageTable& table = request.session()->table_;
  if (spill.id == 0 || table.length() >= spill.length / kv::kPageTokens * kv::kPageTokens)
    return false;
  table.truncate(0);
  return true;
}

void EngineImpl::begin(RequestImpl& request, Source source) {
  request.run();
  if (source == Source::spill) {
    request.start_moving();
    unspills_.push_back(&request);
  } else if (request.spill().id != 0) {
    discards_.push_back(request.spill().id);
    request.set_spill({});
  }
}

// Of requests with a common prefix the first computes it, and the others find it done.
bool EngineImpl::awaits_prefix(const RequestImpl& request) const {
  return std::any_of(active_.begin(), active_.end(), [&](const auto& other) {
    return other->running() && other->pending_tokens() > 1 &&
           scheduler::comes_before(other->standing(), request.standing()) &&
           request.waits_for_prefix_of(*other);
  });
}

// Shared pages as well: whoever else holds them goes on before this one.
bool EngineImpl::others_hold_pages(const RequestImpl& request) const {
  if (pages_->counts().bytes_held > request.session()->table_.bytes_held()) return true;
  return std::any_of(hub_->sessions.begin(), hub_->sessions.end(), [&](const SessionImpl* other) {
    return other != request.session() && other->table_.bytes_held() > 0;
  });
}

// What draft models hold goes first: it makes nobody wait.
bool EngineImpl::give_up_draft_models() {
  bool freed = false;
  for (const auto& request : active_) freed = request->give_up_draft_model() || freed;
  return freed;
}

// The pages of one who must give them to `request`.
EngineImpl::Room EngineImpl::make_room(const RequestImpl& request) {
  if (give_up_draft_models()) return Room::made;
  const auto holding = [](const RequestImpl& of) {
    return of.running() ? scheduler::Holding::running : scheduler::Holding::waiting;
  };
  holders_.clear();
  for (const SessionImpl* session : hub_->sessions) {
    const RequestImpl* of = session->busy_with_;
    const bool gives = of == nullptr || (of != &request && !of->is_moving());
    const int64_t bytes = gives ? session->table_.bytes_held() : 0;
    if (of == nullptr) {
      holders_.push_back({scheduler::Holding::idle, bytes, session->used_last_, {}});
    } else {
      holders_.push_back({holding(*of), bytes, 0, of->standing()});
    }
  }
  const auto victim = scheduler::choose_victim(holders_, {request.standing(), holding(request)});
  if (!victim) return spills_.empty() ? Room::none : Room::later;
  SessionImpl& session = *hub_->sessions[*victim];
  if (session.busy_with_ != nullptr && session.busy_with_->running()) {
    if (!spills_.empty()) return Room::later;  // one after the other: it may be enough
    preempt(*session.busy_with_);
    return spills_.empty() ? Room::made : Room::later;
  }
  session.drop_kv();
  ++hub_->metrics.sessions_dropped;
  return Room::made;
}

void EngineImpl::preempt(RequestImpl& request) {
  ++hub_->metrics.preemptions;
  request.stop_running();
  if (options_.spill.write && request.session()->table_.length() > 0) {
    request.start_moving();
    spills_.push_back(&request);
  } else {
    request.session()->drop_kv();
  }
}

// Pages for the tokens and the drafts; drafts are given up when there are none for them.
Status EngineImpl::reserve(RequestImpl& request, int64_t tokens) {
  kv::PageTable& table = request.session()->table_;
  const auto drafts = static_cast<int64_t>(request.drafts().size());
  if (drafts > 0 && table.reserve(tokens + drafts).ok()) return {};
  request.drop_drafts();
  Status status = table.reserve(tokens);
  while (status.code() == Code::oom_host && make_room(request) == Room::made)
    status = table.reserve(tokens);
  return status;
}

// A request that finds no room waits for what is being written out. Otherwise it gives up what it
// holds when others hold more, who then get on; alone with all the memory there is, it ends with
// the numbers.
void EngineImpl::yield(RequestImpl& request, Status status, TimePoint time, Sessions& released) {
  if (status.code() == Code::oom_host && !spills_.empty()) return;
  if (status.code() == Code::oom_host && others_hold_pages(request)) {
    preempt(request);
  } else {
    retire(request, FinishReason::error, std::move(status), time, released);
  }
}

}  // namespace optima::engine
