// One turn of the engine, read top to bottom: who runs, what they compute, what comes out.
// The host's side (submit, generate, poll, close) is in engine_host.cc.
#include <algorithm>

#include "base/text.h"
#include "engine/engine_impl.h"

namespace optima::engine {
namespace {

constexpr int64_t kSequencesMax = 64;  // of one batch
// Tokens that a draft model, which is behind, computes in a turn while others wait for theirs.
constexpr int64_t kDraftPromptTokens = 64;

}  // namespace

// retire -> publish -> admit -> guess -> schedule -> forward (pack, body, head, sample, commit,
// publish). False = nothing ran.
bool EngineImpl::turn(Sessions& released) {
  if (kAuditTurns > 0 && turns_++ % kAuditTurns == 0) audit_kv();
  turn_begin_ = now();
  turn_compute_s_ = 0;
  ModelRunner* runner = nullptr;
  {
    std::unique_lock lock(hub_->mutex);
    batch_.clear();
    const TimePoint time = now();
    for (size_t i = active_.size(); i-- > 0;)
      if (const auto reason = active_[i]->interrupted(time))
        retire(*active_[i], *reason, {}, time, released);
    const bool published = publish_ready(time, released);
    admit(time, released);
    ask_draft_models();
    if (!draft_tasks_.empty()) {
      lock.unlock();
      guess_drafts();
      lock.lock();
    }
    runner = choose_batch(now(), released);
    const bool moved = move_spills(lock);
    const bool went_on = published || moved || !released.empty();
    stalled_ = batch_.empty() && !went_on && has_work();
    if (batch_.empty()) return went_on;
  }
  forward(runner, released);
  return true;
}

// Runners take turns, so that no model starves another. Null = none has anything to compute.
ModelRunner* EngineImpl::choose_batch(TimePoint time, Sessions& released) {
  runners_.clear();
  for (const auto& request : active_) {
    ModelRunner* runner = &request->session()->runner();
    if (request->running() && !request->is_moving() && !request->waits_for_host() &&
        std::find(runners_.begin(), runners_.end(), runner) == runners_.end())
      runners_.push_back(runner);
  }
  const size_t first = next_runner_++;
  for (size_t i = 0; i < runners_.size(); ++i) {
    ModelRunner* runner = runners_[(first + i) % runners_.size()];
    schedule(runner, time, released);
    if (!batch_.empty()) return runner;
  }
  return nullptr;
}

// What runs in this turn.
void EngineImpl::schedule(ModelRunner* runner, TimePoint time, Sessions& released) {
  const int64_t decoding = collect(runner);
  const auto decodes = std::count_if(
      candidates_.begin(), candidates_.end(), [](const scheduler::Candidate& candidate) {
        return candidate.pending_tokens == 1 && candidate.chunks == scheduler::Chunks::any;
      });
  int64_t prompt_tokens = runner->pace.prompt_tokens(decoding);
  if (decodes == 0) prompt_tokens = std::max(prompt_tokens, kPace.tokens_min);
  scheduler::next(candidates_, {kBatchTokensMax, kSequencesMax, prompt_tokens}, slots_);
  fill_batch(time, released);
}

// The requests that could run, in order. Returns how many are decoding, those that wait for their
// host's answer among them.
int64_t EngineImpl::collect(ModelRunner* runner) {
  int64_t decoding = 0;
  order_.clear();
  for (const auto& request : active_) {
    if (&request->session()->runner() != runner || !request->running()) continue;
    const bool decode = request->pending_tokens() == 1 && !request->session()->encodes();
    decoding += decode || request->waits_for_host() ? 1 : 0;
    if (!request->waits_for_host() && !request->has_chosen() && !request->is_moving())
      order_.push_back(request.get());
  }
  std::sort(order_.begin(), order_.end(), [](const RequestImpl* a, const RequestImpl* b) {
    return scheduler::comes_before(a->standing(), b->standing());
  });
  candidates_.clear();
  for (const RequestImpl* request : order_) {
    const SessionImpl& session = *request->session();
    candidates_.push_back({request->pending_tokens(), session.chunk_tokens(),
                           session.encodes() ? scheduler::Chunks::whole : scheduler::Chunks::any,
                           scheduler::level(request->standing()), request->ran_last()});
  }
  return decoding;
}

// Memory goes to those who outrank the others, whatever their place in the batch. One that finds
// none is preempted, or ends with the numbers; the others go on.
void EngineImpl::fill_batch(TimePoint time, Sessions& released) {
  int64_t tokens_left = kBatchTokensMax;
  for (const scheduler::Slot& slot : slots_) tokens_left -= slot.tokens;
  by_rank_.clear();
  for (const scheduler::Slot& slot : slots_) by_rank_.push_back(slot);
  std::sort(by_rank_.begin(), by_rank_.end(), [this](const auto& a, const auto& b) {
    return scheduler::outranks(order_[a.candidate]->standing(), order_[b.candidate]->standing());
  });
  ++batch_number_;
  for (const scheduler::Slot& slot : by_rank_) {
    RequestImpl& request = *order_[slot.candidate];
    if (!request.running()) continue;  // preempted for one before it
    tokens_left -= request.make_drafts(tokens_left);
    Status reserved = reserve(request, slot.tokens);
    if (reserved.ok()) {
      request.start(time);
      request.run_in(batch_number_);
    } else {
      order_[slot.candidate] = nullptr;  // may be gone
      yield(request, std::move(reserved), time, released);
    }
  }
  for (const scheduler::Slot& slot : slots_) {
    RequestImpl* request = order_[slot.candidate];
    if (request != nullptr && request->running()) batch_.add(*request, slot.tokens);
  }
}

// Who needs guesses of a draft model now. Guesses keep until their request's next pass.
void EngineImpl::ask_draft_models() {
  draft_tasks_.clear();
  for (const auto& request : active_)
    if (request->running() && request->wants_draft_model())
      draft_tasks_.push_back(request->draft_task());
}

// Without the lock: requests that run are changed by this thread alone.
void EngineImpl::guess_drafts() {
  if (draft_tasks_.empty()) return;
  const auto stop = [this] {
    const TimePoint time = now();
    return std::any_of(draft_tasks_.begin(), draft_tasks_.end(), [&](const DraftTask& task) {
      return task.request->cancel_triggered() || task.request->past_deadline(time);
    });
  };
  const auto sequences = static_cast<int64_t>(draft_tasks_.size());
  const int64_t prompt_tokens = sequences == 1 ? kBatchTokensMax : kDraftPromptTokens;
  const TimePoint begin = now();
  const GuessLimits limits{std::min(kBatchTokensMax, prompt_tokens + 2 * sequences),
                           hub_->tables.mutex()};
  const Result<int64_t> passes = guess(draft_tasks_, limits, stop);
  turn_compute_s_ += seconds_between(begin, now());
  if (!passes.ok()) {
    log(LogLevel::warning, text("no guesses of a draft model: ", passes.status().message()));
    return;
  }
  const std::lock_guard lock(hub_->mutex);
  hub_->metrics.draft_batches += static_cast<uint64_t>(*passes);
}

// Tokens that were chosen in an earlier pass and wait for their host to have answered the one
// before.
bool EngineImpl::publish_ready(TimePoint time, Sessions& released) {
  bool any = false;
  for (size_t i = active_.size(); i-- > 0;) {
    RequestImpl& request = *active_[i];
    if (request.waits_for_host() || !request.has_chosen()) continue;
    any = true;
    if (const auto reason = request.publish_chosen(time))
      retire(request, *reason, {}, time, released);
  }
  return any;
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
  const TimePoint begin = now();
  Status status = runner->runner->run_body(batch, [this] { return interrupted_in_batch(); });
  if (status.ok()) status = score(runner, batch);
  const TimePoint computed = now();
  turn_compute_s_ += seconds_between(begin, computed);

  const std::lock_guard lock(hub_->mutex);
  if (status.ok()) count_batch(*runner, begin, computed);
  const TimePoint time = now();
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
    request.advance(sequence.tokens - sequence.drafts, time);
    if (const auto reason = request.publish_tokens(time))
      retire(request, *reason, {}, time, released);
  }
  batch_.clear();
  hub_->metrics.turn_s += seconds_between(turn_begin_, now());
  hub_->metrics.compute_s += turn_compute_s_;
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

// What the batch took, for the pace of prompts and for the metrics; each of its requests is charged
// its share of the weights, the KV that its rows read, and its drafts.
void EngineImpl::count_batch(ModelRunner& runner, TimePoint begin, TimePoint end) {
  int64_t tokens = 0, decodes = 0;
  for (const PackedSequence& sequence : batch_.sequences()) {
    tokens += sequence.tokens;
    decodes += sequence.tokens - sequence.drafts == 1 ? 1 + sequence.drafts : 0;
  }
  runner.pace.observe(tokens - decodes, decodes,
                      std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
  ++hub_->metrics.batches;
  hub_->metrics.batch_tokens.add(static_cast<double>(tokens));
  const auto sequences = static_cast<int64_t>(batch_.sequences().size());
  for (const PackedSequence& sequence : batch_.sequences()) {
    Counters& counters = sequence.request->counters();
    counters.weight_bytes_read += runner.weight_bytes_per_step / sequences;
    counters.kv_bytes_read += sequence.kv_bytes_read;
    counters.draft_tokens += sequence.drafts;
  }
}

void EngineImpl::retire(RequestImpl& request, FinishReason reason, Status status, TimePoint time,
                        Sessions& released) {
  if (request.spill().id != 0) discards_.push_back(request.spill().id);
  released.push_back(request.finish(reason, std::move(status), time));
  std::erase_if(active_, [&](const auto& entry) { return entry.get() == &request; });
}

}  // namespace optima::engine
