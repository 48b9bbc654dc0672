// A request's life: prepare (text to ids), claim (join with the session), progress as the engine
// turns, finish. What comes out of the rows is in request_output.cc. See request_impl.h for which
// thread may call what.
#include "engine/request_impl.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/text.h"
#include "engine/drafts.h"

namespace optima::engine {
RequestImpl::RequestImpl(std::shared_ptr<Hub> hub, std::shared_ptr<SessionImpl> session,
                         RequestSpec spec, Delivery delivery)
    : hub_(std::move(hub)),
      session_(std::move(session)),
      spec_(std::move(spec)),
      delivery_(delivery) {}

// A session makes embeddings or answers, and an embedding has no part that is generated or scored.
Status RequestImpl::check_output() const {
  if (session_->output() == SessionOutput::tokens) {
    if (!spec_.embedding) return {};
    return Status(
        Code::invalid_state,
        "the session generates tokens: an embedding needs a session whose output is that");
  }
  if (!spec_.embedding)
    return Status(Code::invalid_state, "the session makes embeddings, it generates no tokens");
  const char* excess = nullptr;
  if (spec_.context_shift) excess = "a context that shifts";
  if (spec_.prompt_mode == PromptMode::append) excess = "a prompt that is appended";
  if (spec_.max_tokens != 0 || spec_.prompt_only) excess = "a number of tokens to generate";
  if (!spec_.stop_strings.empty() || !spec_.stop_tokens.empty()) excess = "stops";
  if (spec_.grammar) excess = "a grammar";
  if (spec_.drafts_max != 0) excess = "drafts";
  if (spec_.logits_hook || !spec_.logits_positions.empty() || spec_.prompt_logprobs_from >= 0)
    excess = "logits";
  if (excess == nullptr) return {};
  return Status(Code::invalid_argument, text("an embedding has no use for ", excess));
}

Status RequestImpl::check_spec() const {
  OPTIMA_TRY(check_output());
  if (spec_.max_tokens < 0)
    return Status(Code::invalid_argument, text("max_tokens is ", spec_.max_tokens, ", wanted >= 0"),
                  {spec_.max_tokens, -1, -1});
  if (spec_.deadline_ms < 0)
    return Status(Code::invalid_argument,
                  text("deadline_ms is ", spec_.deadline_ms, ", wanted >= 0"));
  if (std::abs(int64_t{spec_.priority}) > scheduler::kPriorityMax)
    return Status(Code::invalid_argument,
                  text("priority is ", spec_.priority, ", wanted ", -scheduler::kPriorityMax,
                       " to ", scheduler::kPriorityMax),
                  {spec_.priority, -1, scheduler::kPriorityMax});
  if (spec_.drafts_max < 0 || spec_.drafts_max > kDraftsMax)
    return Status(Code::invalid_argument,
                  text("drafts are ", spec_.drafts_max, " at most, wanted 0 to ", kDraftsMax));
  if (spec_.prompt_logprobs_from < -1)
    return Status(Code::invalid_argument,
                  text("prompt_logprobs_from is ", spec_.prompt_logprobs_from, ", wanted >= -1"));
  OPTIMA_TRY(check_shift());
  const auto vocabulary = static_cast<int32_t>(session_->runner().vocabulary);
  for (const int32_t id : spec_.stop_tokens)
    if (id < 0 || id >= vocabulary)
      return Status(Code::invalid_argument,
                    text("stop token ", id, " is outside the vocabulary of ", vocabulary));
  const int64_t floats = static_cast<int64_t>(spec_.logits_positions.size()) * vocabulary;
  if (floats > 0 && (spec_.logits_out == nullptr || spec_.logits_capacity < floats))
    return Status(Code::invalid_argument,
                  text("logits of ", spec_.logits_positions.size(), " positions need ", floats,
                       " floats, the buffer holds ", spec_.logits_capacity),
                  {floats, spec_.logits_capacity, -1});
  const auto& positions = spec_.logits_positions;
  if (!positions.empty() && positions.front() < 0)
    return Status(Code::invalid_argument, text("logits position ", positions.front()));
  if (std::adjacent_find(positions.begin(), positions.end(), std::greater_equal<>()) !=
      positions.end())
    return Status(Code::invalid_argument, "logits positions are not ascending");
  return sampling::validate(spec_.sampling, vocabulary);
}

Status RequestImpl::resolve_prompt() {
  if (spec_.has_ids) {
    prompt_ = std::move(spec_.ids);
  } else {
    OPTIMA_ASSIGN(const tokenizer::Tokenizer* tokenizer, session_->model_impl().tokenizer());
    // A prompt that continues the session must not bring a second BOS.
    const bool special = spec_.add_special && spec_.prompt_mode == PromptMode::whole;
    OPTIMA_ASSIGN(
        prompt_,
        tokenizer->encode(
            spec_.text, special ? tokenizer::Special::add : tokenizer::Special::omit,
            spec_.parse_special ? tokenizer::SpecialText::parse : tokenizer::SpecialText::literal));
  }
  const int64_t vocabulary = session_->runner().vocabulary;
  for (const int32_t id : prompt_)
    if (id < 0 || id >= vocabulary)
      return Status(Code::invalid_argument,
                    text("prompt token ", id, " is outside the vocabulary of ", vocabulary),
                    {id, -1, vocabulary});
  return {};
}

Status RequestImpl::prepare() {
  OPTIMA_TRY(check_spec());
  OPTIMA_TRY(resolve_prompt());
  OPTIMA_ASSIGN(const tokenizer::Tokenizer* tokenizer, session_->model_impl().tokenizer());
  detokenizer_.emplace(*tokenizer, spec_.show_special ? tokenizer::SpecialText::parse
                                                      : tokenizer::SpecialText::literal);
  stops_.emplace(spec_.stop_strings);
  if (spec_.embedding) {
    pooler_.emplace(*spec_.embedding, *session_->model_impl().config());
    return {};
  }
  static_assert(sampling::kBlock == kernels::kVocabularyBlock);
  const kernels::VocabularyKernel kernel = session_->runner().runner->vocabulary_kernel();
  passes_ = {kernel.maxima, kernel.weights, kernel.masses};
  sampler_.emplace(spec_.sampling, static_cast<int32_t>(session_->runner().vocabulary), passes_);
  if (spec_.grammar) {
    OPTIMA_ASSIGN(auto grammar, session_->model_impl().grammar(*spec_.grammar));
    grammar_.emplace(std::move(grammar));
  }
  return {};
}

// How many prompt tokens may come from KV: what is to be scored or continued must be computed.
int64_t RequestImpl::reuse_limit(int64_t prompt_tokens) const {
  if (pooler_) return pooler_->first_row(prompt_tokens);
  int64_t limit = spec_.prompt_only ? prompt_tokens : prompt_tokens - 1;
  if (spec_.prompt_logprobs_from >= 0)
    limit = std::min(limit, std::max<int64_t>(0, spec_.prompt_logprobs_from - 1));
  if (!spec_.logits_positions.empty()) limit = std::min(limit, spec_.logits_positions.front());
  return std::max<int64_t>(0, limit);
}

// Of the prompt, joined with what the session holds, or will hold when it has shifted.
int64_t RequestImpl::tokens_wanted() const {
  const auto prompt = static_cast<int64_t>(prompt_.size());
  if (spec_.prompt_mode != PromptMode::append) return prompt;
  return prompt + static_cast<int64_t>(session_->tokens_.size()) - shift_for_prompt();
}

Status RequestImpl::check_claim() const {
  const SessionImpl& s = *session_;
  if (s.closed_ || s.model_impl().closed())
    return Status(Code::invalid_state, "the session or its model was destroyed");
  if (s.busy_with_ != nullptr) return Status(Code::busy, "the session already runs a request");
  const int64_t total = tokens_wanted();
  if (total == 0) return Status(Code::invalid_argument, "the prompt has no tokens");
  if (total <= s.prompt_tokens_max()) return check_memory();
  return Status(Code::context_full,
                text("the prompt has ", total, " tokens, ",
                     s.prompt_tokens_max() < s.context_tokens() ? "in one piece can be computed "
                                                                : "the context holds ",
                     s.prompt_tokens_max()),
                {total, s.prompt_tokens_max(), s.prompt_tokens_max()});
}

void RequestImpl::claim(TimePoint now) {
  SessionImpl& s = *session_;
  const int64_t total = tokens_wanted();
  tokens_before_ = s.tokens_;
  result_.counters.shifted_tokens = drop_oldest(shift_for_prompt());
  int64_t reuse = s.table_.length();
  if (spec_.prompt_mode == PromptMode::append) {
    s.tokens_.insert(s.tokens_.end(), prompt_.begin(), prompt_.end());
  } else {
    reuse = std::min(reuse, common_prefix(s.tokens_, prompt_));
    s.tokens_ = prompt_;
  }
  const int64_t output_tokens = pooler_ ? 0 : spec_.max_tokens > 0 ? spec_.max_tokens : 4096;
  s.tokens_.reserve(static_cast<size_t>(std::min(s.context_tokens(), total + output_tokens)));
  reuse = s.table_.reusable(std::min(reuse, reuse_limit(total)));
  s.table_.truncate(reuse);
  if (spec_.drafts_max > 0 && s.draft() != nullptr)
    draft_ = std::make_unique<DraftSequence>(*s.draft(), s.runner().vocabulary);
  s.busy_with_ = this;
  computed_ = reuse;
  prompt_tokens_ = total;
  max_tokens_ = spec_.max_tokens > 0 ? spec_.max_tokens : std::numeric_limits<int64_t>::max();
  result_.prompt_ids = s.tokens_;
  result_.counters.prompt_tokens = total;
  result_.counters.cached_tokens = reuse;
  if (reuse > 0) result_.counters.cache_miss = CacheMiss::none;
  if (spec_.prompt_logprobs_from >= 0) {
    if (spec_.prompt_logprobs_from == 0)
      result_.prompt_logprobs.push_back(std::numeric_limits<float>::quiet_NaN());
    result_.prompt_logprobs.reserve(static_cast<size_t>(total));
  }
  submitted_ = now;
  if (spec_.deadline_ms > 0) deadline_ = now + std::chrono::milliseconds(spec_.deadline_ms);
  s.served_ = hub_->share.begin(s.served_);
  standing_ = {spec_.priority, ns_between({}, now),
               deadline_ ? ns_between({}, *deadline_) : scheduler::kNoDeadline, s.served_,
               ++hub_->arrivals};
}

// As reuse_limit(); what was scored before it was preempted need not be computed here again.
int64_t RequestImpl::adopt_limit() const {
  const auto total = static_cast<int64_t>(session_->tokens_.size());
  return std::min(spec_.prompt_only ? total : total - 1,
                  std::max(reuse_limit(prompt_tokens_), std::min(computed_, total - 1)));
}

void RequestImpl::adopt_prefix() {
  if (running_ || session_->encodes()) return;
  const int64_t length = session_->table_.adopt(session_->tokens_, adopt_limit());
  if (!started()) result_.counters.cached_tokens = length;
}

CacheMiss RequestImpl::why_missed() const {
  if (result_.counters.cached_tokens > 0) return CacheMiss::none;
  if (session_->encodes()) return CacheMiss::encoder;
  const int64_t limit = reuse_limit(prompt_tokens_);
  if (limit < kv::kPageTokens)
    return prompt_tokens_ <= kv::kPageTokens ? CacheMiss::too_short : CacheMiss::scored;
  const kv::PageTable& table = session_->table_;
  const std::span<const int32_t> tokens(session_->tokens_);
  const kv::Miss miss = session_->runner().pages->why_missed(
      table.root(), tokens.first(static_cast<size_t>(limit)), table.groups());
  return static_cast<CacheMiss>(static_cast<int32_t>(CacheMiss::unknown) +
                                static_cast<int32_t>(miss));
}

bool RequestImpl::waits_for_prefix_of(const RequestImpl& other) const {
  if (running_ || session_->encodes()) return false;
  if (other.session_->table_.root() != session_->table_.root()) return false;
  const int64_t common =
      std::min(common_prefix(session_->tokens_, other.session_->tokens_), adopt_limit());
  return common / kv::kPageTokens * kv::kPageTokens > session_->table_.length();
}

void RequestImpl::start(TimePoint now) {
  if (started_ != TimePoint{}) return;
  started_ = now;
  result_.counters.cache_miss = why_missed();
  Metrics& metrics = hub_->metrics;
  metrics.queue_s.add(seconds_between(submitted_, started_));
  metrics.prompt_tokens += static_cast<uint64_t>(prompt_tokens_);
  metrics.prompt_tokens_cached += static_cast<uint64_t>(result_.counters.cached_tokens);
}

bool RequestImpl::done() const {
  const std::lock_guard lock(hub_->mutex);
  return done_;
}

bool RequestImpl::wait(int64_t timeout_ms) {
  std::unique_lock lock(hub_->mutex);
  const auto is_done = [this] { return done_; };
  if (timeout_ms < 0) {
    hub_->events.wait(lock, is_done);
    return true;
  }
  return hub_->events.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_done);
}

int64_t RequestImpl::pending_tokens() const {
  return static_cast<int64_t>(session_->tokens_.size()) - session_->table_.length();
}

bool RequestImpl::cancel_triggered() const {
  return cancel_.triggered() || (spec_.cancel != nullptr && spec_.cancel->triggered());
}

std::optional<FinishReason> RequestImpl::interrupted(TimePoint now) const {
  if (verdict_ == Verdict::stop) return FinishReason::host;
  if (verdict_ == Verdict::cancel || cancel_triggered() || session_->model_impl().closed())
    return FinishReason::cancelled;
  if (past_deadline(now)) return FinishReason::deadline;
  if (pending_tokens() == 0) return FinishReason::length;  // prompt_only, all of it from KV
  return std::nullopt;
}

void RequestImpl::collect_scored_rows(int32_t row_begin, int64_t tokens,
                                      std::vector<ScoredRow>& out) const {
  if (pooler_) return collect_pooled_rows(row_begin, tokens, out);
  const int64_t first = session_->table_.length();
  const auto total = static_cast<int64_t>(session_->tokens_.size());
  const int64_t scored_from =
      spec_.prompt_logprobs_from < 0 ? total : std::max<int64_t>(spec_.prompt_logprobs_from, 1) - 1;
  const bool generates =
      !spec_.prompt_only && (total < session_->context_tokens() || spec_.context_shift);
  const auto& positions = spec_.logits_positions;
  for (int64_t position = first; position < first + tokens; ++position) {
    const bool sample = generates && position >= total - 1;
    const bool is_new = position >= computed_;
    const bool scored = is_new && position >= scored_from && position + 1 < prompt_tokens_;
    const bool copied = is_new && std::binary_search(positions.begin(), positions.end(), position);
    if (sample || scored || copied)
      out.push_back({row_begin + static_cast<int32_t>(position - first), position, sample});
  }
}

void RequestImpl::collect_pooled_rows(int32_t row_begin, int64_t tokens,
                                      std::vector<ScoredRow>& out) const {
  const int64_t begin = session_->table_.length();
  const int64_t first = std::max({begin, computed_, pooler_->first_row(prompt_tokens_)});
  const int64_t end = std::min(begin + tokens, pooler_->last_row(prompt_tokens_) + 1);
  for (int64_t position = first; position < end; ++position)
    out.push_back({row_begin + static_cast<int32_t>(position - begin), position, false});
}

void RequestImpl::advance(int64_t tokens, TimePoint now) {
  const bool prefilling = computed_ < prompt_tokens_;
  session_->served_ += tokens;
  hub_->share.serve(standing_.tag);
  if (session_->encodes()) {
    session_->table_.commit(tokens);  // its KV depends on what follows
  } else {
    session_->table_.commit(tokens, session_->tokens_);
  }
  computed_ = std::max(computed_, session_->table_.length());
  if (!prefilling) return;
  prompt_done_ = now;
  result_.counters.prefill_ns = ns_between(started_, now);
  Event event = make_event(EventType::prefill);
  event.tokens_done = std::min(computed_, prompt_tokens_);
  event.tokens_total = prompt_tokens_;
  publish(std::move(event));
}

// Of a request that ends now.
void RequestImpl::count_end(FinishReason reason, TimePoint now) {
  Metrics& metrics = hub_->metrics;
  ++metrics.finished[static_cast<size_t>(reason)];
  metrics.draft_tokens += static_cast<uint64_t>(result_.counters.draft_tokens);
  metrics.draft_tokens_accepted += static_cast<uint64_t>(result_.counters.draft_tokens_accepted);
  metrics.request_s.add(seconds_between(submitted_, now));
  if (prompt_done_ == TimePoint{}) return;
  metrics.prefill_s.add(seconds_between(started_, prompt_done_));
  metrics.decode_s.add(seconds_between(prompt_done_, now));
}

std::shared_ptr<SessionImpl> RequestImpl::finish(FinishReason reason, Status status,
                                                 TimePoint now) {
  Event event = make_event(EventType::done);
  if (result_.stop_index < 0) {
    append_text(event, detokenizer_->finish());
    if (result_.stop_index < 0) {
      const std::string held = stops_->finish();
      result_.text += held;
      event.text += held;
    }
  }
  SessionImpl& s = *session_;
  s.table_.abort();
  if (s.encodes()) s.table_.truncate(0);
  if (verdict_ == Verdict::cancel) {
    s.table_.truncate(
        s.table_.reusable(std::min(s.table_.length(), common_prefix(s.tokens_, tokens_before_))));
    s.tokens_ = std::move(tokens_before_);
  }
  s.busy_with_ = nullptr;
  s.used_last_ = ++hub_->uses;
  draft_.reset();
  if (started_ == TimePoint{}) started_ = now;
  result_.counters.queue_ns = ns_between(submitted_, started_);
  if (prompt_done_ != TimePoint{}) result_.counters.decode_ns = ns_between(prompt_done_, now);
  count_end(reason, now);
  result_.finish = reason;
  result_.status = std::move(status);
  if (reason != FinishReason::embedded) result_.embedding.clear();  // made before it was cancelled
  event.finish = reason;
  waits_for_host_ = false;
  done_ = true;
  publish(std::move(event));
  return std::move(session_);
}

void RequestImpl::answer(Verdict verdict) {
  // An event published with the token (prefill progress) may be answered before the host saw it.
  if (events_.empty()) waits_for_host_ = false;
  if (verdict != Verdict::go_on && !verdict_) verdict_ = verdict;
}

Event RequestImpl::make_event(EventType type) {
  Event event;
  event.type = type;
  event.request = shared_from_this();
  return event;
}

void RequestImpl::publish(Event event) {
  if (delivery_ == Delivery::callback) events_.push_back(std::move(event));
  if (delivery_ == Delivery::queue) sink_->push(std::move(event));
  hub_->events.notify_all();
}

}  // namespace optima::engine
