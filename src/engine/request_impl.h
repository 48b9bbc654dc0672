// The engine's side of a request: what is still to compute, and the way from a chosen token to
// text, events and the result.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft_model.h"
#include "engine/engine.h"
#include "engine/event_queue.h"
#include "engine/hub.h"
#include "engine/pooler.h"
#include "engine/request.h"
#include "engine/session_impl.h"
#include "sampling/sampler.h"
#include "sampling/stop_strings.h"
#include "tokenizer/detokenizer.h"

namespace optima::engine {

using TimePoint = std::chrono::steady_clock::time_point;

inline TimePoint now() {
  return std::chrono::steady_clock::now();
}

inline int64_t ns_between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}
inline double seconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// Who receives the events of a request.
enum class Delivery : uint8_t {
  queue,     // the engine's queue, for poll()
  callback,  // the thread inside generate(), which answers each event with a Verdict
  none,      // generate() without a callback
};

// Why a row of the batch is scored.
struct ScoredRow {
  int32_t batch_row = 0;
  int64_t position = 0;
  bool sample = false;  // the row that chooses the next token
};

class RequestImpl final : public Request, public std::enable_shared_from_this<RequestImpl> {
 public:
  RequestImpl(std::shared_ptr<Hub> hub, std::shared_ptr<SessionImpl> session, RequestSpec spec,
              Delivery delivery);

  // Tokenises and checks against the vocabulary; no lock held. Errors are the caller's.
  Status prepare();
  // Whether claim() may be called. Under the hub's lock, as claim().
  Status check_claim() const;
  // Claims the session: joins the prompt with what it holds.
  void claim(TimePoint now);

  // ---- Request ----
  bool done() const override;
  void* user() const override { return spec_.user; }
  const RequestResult& result() const override { return result_; }
  bool wait(int64_t timeout_ms) override;

  // ---- the engine's turn; state under the hub's lock, the rest by the driving thread alone ----
  SessionImpl* session() const { return session_.get(); }
  Delivery delivery() const { return delivery_; }
  bool waits_for_host() const { return waits_for_host_; }
  bool started() const { return started_ != TimePoint{}; }
  // Whether it may hold pages: it has begun and is not preempted.
  bool running() const { return running_; }
  void run() { running_ = true; }
  // It may hold pages no more, but its tokens and what was chosen after them stay: their KV can be
  // computed again.
  void stop_running();
  // Where its KV was written to.
  struct Spill {
    uint64_t id = 0;     // 0 = nowhere
    int64_t length = 0;  // tokens
  };
  const Spill& spill() const { return spill_; }
  void set_spill(const Spill& spill) { spill_ = spill; }
  bool is_moving() const { return moving_; }  // to there, or back from there
  void start_moving() { moving_ = true; }
  void end_moving() { moving_ = false; }
  // Bytes of KV that it needs beyond those it holds: of its tokens and of a page of what follows.
  int64_t bytes_missing() const;
  // Whether the next token could be computed if it had so much.
  bool fits_barely(int64_t bytes_free) const;
  Status memory_error() const;             // that they cannot be had
  bool finished() const { return done_; }  // done() for those who hold the lock
  int64_t pending_tokens() const;
  // The reason to end it before any more work, if there is one.
  std::optional<FinishReason> interrupted(TimePoint now) const;
  bool cancel_triggered() const;
  bool past_deadline(TimePoint now) const { return deadline_ && now >= *deadline_; }
  // Cancelled or late; needs no lock.
  bool is_given_up() const { return cancel_triggered() || past_deadline(now()); }
  std::optional<TimePoint> deadline() const { return deadline_; }

  const scheduler::Standing& standing() const { return standing_; }
  uint64_t ran_last() const { return ran_last_; }
  // It takes part in a batch of this number.
  void run_in(uint64_t batch) { ran_last_ = batch; }

  // Rows to score when the `tokens` tokens after the committed ones run at `row_begin`.
  void collect_scored_rows(int32_t row_begin, int64_t tokens, std::vector<ScoredRow>& out) const;
  // One scored row: copies, log-probabilities, and for the sampling row the next token; in a
  // session for embeddings a hidden row.
  Status take_row(const ScoredRow& row, std::span<float> values);
  // KV of `tokens` more tokens is written. Publishes prefill progress. Under the lock.
  void advance(int64_t tokens, TimePoint now);
  // Publishes what take_row() has chosen, token by token until the host has to answer; returns the
  // reason if the last one was among them. Under the lock.
  std::optional<FinishReason> publish_tokens(TimePoint now);
  // The same for what is left since an earlier pass.
  bool has_chosen() const { return !chosen_.empty(); }
  // How many tokens behind the session's have KV: of right drafts, until they are published.
  int64_t chosen_with_kv() const {
    return chosen_has_kv_ ? static_cast<int64_t>(chosen_.size()) : 0;
  }
  std::optional<FinishReason> publish_chosen(TimePoint now);
  // Ends the request: result, last event, session freed. Returns the session for the caller to let
  // go of outside the lock.
  std::shared_ptr<SessionImpl> finish(FinishReason reason, Status status, TimePoint now);

  // The host's answer to the oldest unanswered event. Under the lock.
  void answer(Verdict verdict);
  std::deque<Event>& own_events() { return events_; }
  void set_sink(EventQueue* sink) { sink_ = sink; }

  // Before it runs: takes over what other sessions have computed of its tokens.
  void adopt_prefix();
  // Whether `other`, which computes its prompt now, will have computed more of this one's, too.
  bool waits_for_prefix_of(const RequestImpl& other) const;
  // Whether a draft model is to make guesses before this pass, and what it needs for that.
  bool wants_draft_model() const;
  DraftTask draft_task();
  // Behind what is computed of the draft model's KV, pages are held for so many tokens.
  int64_t draft_tokens_in_flight() const { return draft_ == nullptr ? 0 : draft_->reserved(); }
  // Frees the draft model's KV; false when there was none.
  bool give_up_draft_model() { return draft_ != nullptr && draft_->give_up(); }
  // Guesses at what follows the one token that this pass computes, at most `room` of them; returns
  // how many. Begins the pass.
  int64_t make_drafts(int64_t room);
  void drop_drafts() { drafts_.clear(); }
  const std::vector<int32_t>& drafts() const { return drafts_; }
  // The first time it is scheduled.
  void start(TimePoint now);
  Counters& counters() { return result_.counters; }

 private:
  int64_t drafts_room() const;
  Status resolve_prompt();
  Status check_spec() const;
  Status check_output() const;
  int64_t tokens_wanted() const;
  Status check_shift() const;
  int64_t shift_keep() const;
  int64_t shift_for_prompt() const;
  int64_t drop_oldest(int64_t tokens);
  void shift_context();
  int64_t tokens_to_begin(int64_t tokens) const;
  int64_t chunk_for(int64_t tokens) const;
  Status check_memory() const;
  Status memory_error_of(int64_t tokens) const;
  int64_t adopt_limit() const;
  int64_t reuse_limit(int64_t prompt_tokens) const;
  CacheMiss why_missed() const;
  void collect_pooled_rows(int32_t row_begin, int64_t tokens, std::vector<ScoredRow>& out) const;
  Status take_logits(const ScoredRow& row, std::span<float> logits);
  Status pool(const ScoredRow& row, std::span<const float> hidden);
  // A token and the grammar's state after it.
  struct Chosen {
    sampling::Pick pick;
    std::optional<sampling::GrammarState> grammar;
  };
  Status sample(std::span<float> logits);
  Result<Chosen> choose(std::span<float> logits);
  std::optional<FinishReason> publish_token(Chosen chosen, TimePoint now);
  // Whether the answer ends with this token, after which the grammar is in this state.
  bool is_last(int32_t token, const std::optional<sampling::GrammarState>& grammar) const;
  std::optional<FinishReason> finish_reason_of(int32_t token) const;
  void count_token(TimePoint now);
  void count_end(FinishReason reason, TimePoint now);
  Event make_event(EventType type);
  void publish(Event event);
  void append_text(Event& event, std::string_view text);

  std::shared_ptr<Hub> hub_;
  std::shared_ptr<SessionImpl> session_;
  RequestSpec spec_;
  Delivery delivery_;
  std::vector<int32_t> prompt_;         // as given, before joining
  std::vector<int32_t> tokens_before_;  // of the session, for a roll-back
  int64_t prompt_tokens_ = 0;           // joined with the session's
  int64_t max_tokens_ = 0;
  TimePoint submitted_{}, started_{}, prompt_done_{}, last_token_{};
  std::optional<TimePoint> deadline_;
  scheduler::Standing standing_;
  uint64_t ran_last_ = 0;
  bool running_ = false;
  bool moving_ = false;
  Spill spill_;
  int64_t computed_ = 0;  // tokens whose KV was there once; what they were scored for is done
  sampling::Passes passes_ = sampling::kPlainPasses;  // of the session's runner
  std::optional<sampling::Sampler> sampler_;
  std::optional<sampling::GrammarState> grammar_;
  std::optional<tokenizer::Detokenizer> detokenizer_;
  std::optional<sampling::StopStrings> stops_;
  std::vector<int32_t> drafts_;
  std::unique_ptr<DraftSequence> draft_;  // ends before the session
  std::deque<Chosen> chosen_;             // not yet published
  bool chosen_has_kv_ = false;            // of the drafts among them, until it is preempted
  std::vector<int32_t> history_;          // the session's tokens and the chosen ones
  std::optional<Pooler> pooler_;          // of a request for an embedding
  size_t next_logits_ = 0;                // into spec_.logits_positions
  bool waits_for_host_ = false;
  std::optional<Verdict> verdict_;
  bool done_ = false;
  std::deque<Event> events_;    // Delivery::callback
  EventQueue* sink_ = nullptr;  // the engine's
  RequestResult result_;
};

}  // namespace optima::engine
