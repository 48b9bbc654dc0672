// One turn of the engine, read top to bottom: who runs, what they compute, what comes out.
// The host's side (submit, generate, poll, close) is in engine_host.cc.
#include <algorithm>

#include "base/text.h"
#include "engine/engine_impl.h"

namespace optima::engine {
namespace {

constexpr int64_t kSequencesMax = 64;  // of one batch

TimePoint now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

// retire -> schedule -> forward (pack, body, head, sample, commit, publish). False = nothing ran.
bool EngineImpl::turn(Sessions& released) {
  batch_.clear();
  {
    const std::lock_guard lock(hub_->mutex);
    ModelRunner* runner = retire_and_choose(now(), released);
    if (runner == nullptr) return !released.empty();
    schedule(runner, now(), released);
    if (batch_.empty()) return true;
  }
  forward(&batch_.sequences().front().request->session()->runner(), released);
  return true;
}

// Ends what was cancelled, is late or has nothing left to do. Then the runner whose requests run
// in this turn: runners take turns, so that no model starves another.
ModelRunner* EngineImpl::retire_and_choose(TimePoint time, Sessions& released) {
  for (size_t i = active_.size(); i-- > 0;)
    if (const auto reason = active_[i]->interrupted(time))
      retire(*active_[i], *reason, {}, time, released);
  runners_.clear();
  for (const auto& request : active_) {
    ModelRunner* runner = &request->session()->runner();
    if (!request->waits_for_host() &&
        std::find(runners_.begin(), runners_.end(), runner) == runners_.end())
      runners_.push_back(runner);
  }
  return runners_.empty() ? nullptr : runners_[next_runner_++ % runners_.size()];
}

// Fills batch_ with what the scheduler chose and has room for. A request whose pages cannot be had
// ends with the numbers; the others go on.
void EngineImpl::schedule(ModelRunner* runner, TimePoint time, Sessions& released) {
  candidates_.clear();
  candidate_requests_.clear();
  for (const auto& request : active_) {
    if (request->waits_for_host() || &request->session()->runner() != runner) continue;
    const SessionImpl& session = *request->session();
    candidates_.push_back({request->pending_tokens(), session.chunk_tokens(),
                           session.encodes() ? scheduler::Chunks::whole : scheduler::Chunks::any});
    candidate_requests_.push_back(request.get());
  }
  scheduler::next(candidates_, {kBatchTokensMax, kSequencesMax}, slots_);
  for (const scheduler::Slot& slot : slots_) {
    RequestImpl& request = *candidate_requests_[slot.candidate];
    request.start(time);
    Status reserved = request.session()->table_.reserve(slot.tokens);
    if (reserved.ok()) {
      batch_.add(request, slot.tokens);
    } else {
      retire(request, FinishReason::error, std::move(reserved), time, released);
    }
  }
}

bool EngineImpl::interrupted_in_batch() const {
  const TimePoint time = now();
  return std::any_of(
      batch_.sequences().begin(), batch_.sequences().end(), [&](const PackedSequence& sequence) {
        return sequence.request->cancel_triggered() || sequence.request->past_deadline(time);
      });
}

// Nothing is committed unless the whole batch went through: a cancelled sequence costs the others
// the turn, not their state.
void EngineImpl::forward(ModelRunner* runner, Sessions& released) {
  const graph::Batch batch = batch_.view();
  Status status = runner->runner->run_body(batch, [this] { return interrupted_in_batch(); });
  if (status.ok()) status = score(runner, batch);

  const std::lock_guard lock(hub_->mutex);
  const TimePoint time = now();
  if (status.ok()) count_bytes(*runner);
  for (const PackedSequence& sequence : batch_.sequences()) {
    RequestImpl& request = *sequence.request;
    if (!status.ok()) {
      request.session()->table_.abort();
      if (status.code() != Code::cancelled)
        retire(request, FinishReason::error, status, time, released);
      continue;
    }
    if (!sequence.failure.ok()) {
      retire(request, FinishReason::error, sequence.failure, time, released);
      continue;
    }
    request.advance(sequence.tokens, time);
    if (const auto reason = request.publish_token(time))
      retire(request, *reason, {}, time, released);
  }
}

// The head over the scored rows, a tile at a time; each row goes to its request.
Status EngineImpl::score(ModelRunner* runner, const graph::Batch& batch) {
  const std::vector<ScoredRow>& rows = batch_.scored();
  const auto row_count = static_cast<int64_t>(rows.size());
  size_t sequence = 0;
  for (int64_t begin = 0; begin < row_count; begin += runner->outputs_max) {
    const int64_t count = std::min(runner->outputs_max, row_count - begin);
    OPTIMA_ASSIGN(float* values, runner->runner->run_head(batch, begin, count));
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<size_t>(begin + i);
      while (index >= batch_.sequences()[sequence].scored_end) ++sequence;
      PackedSequence& taker = batch_.sequences()[sequence];
      if (taker.failure.ok())
        taker.failure = taker.request->take_row(
            rows[index],
            {values + i * runner->result_width, static_cast<size_t>(runner->result_width)});
    }
  }
  return {};
}

// Each request of the batch is charged its share of the weights and the KV that its rows read.
void EngineImpl::count_bytes(const ModelRunner& runner) {
  const auto sequences = static_cast<int64_t>(batch_.sequences().size());
  for (const PackedSequence& sequence : batch_.sequences()) {
    Counters& counters = sequence.request->counters();
    counters.weight_bytes_read += runner.weight_bytes_per_step / sequences;
    counters.kv_bytes_read += sequence.kv_bytes_read;
  }
}

void EngineImpl::retire(RequestImpl& request, FinishReason reason, Status status, TimePoint time,
                        Sessions& released) {
  released.push_back(request.finish(reason, std::move(status), time));
  std::erase_if(active_, [&](const auto& entry) { return entry.get() == &request; });
}

}  // namespace optima::engine
